// What modules declare is totalled exactly, whatever is shared, tied or reached by a share of the tokens.
#include "experiments/accounting/accounting.hpp"

#include "core/error.hpp"
#include "experiments/accounting/report.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace moelab;

namespace {

// One weight that is multiplied `uses` times on the way of a token.
class Reused : public Module {
 public:
  Reused(Index width, int uses) : weight_(width, width, Init::normal(0.02)), uses_(uses) {}
  void visit(Visitor& v) override {
    v.parameter("w", weight_);
    for (int i = 0; i < uses_; ++i) v.product("use", {{}, weight_.rows(), weight_.cols()});
  }

 private:
  Parameter weight_;
  int uses_;
};

class Table : public Module {
 public:
  Table(std::string name, Index vocab, Index d_model)
      : name_(std::move(name)), weight_(vocab, d_model, Init::normal(0.02)) {}
  void visit(Visitor& v) override { v.parameter(name_, weight_); }

 private:
  std::string name_;
  Parameter weight_;
};

// The head of a tied model has a product and no weight.
class Head : public Module {
 public:
  Head(Index vocab, Index d_model, bool tied) : vocab_(vocab), d_model_(d_model) {
    if (!tied) weight_.emplace(vocab, d_model, Init::normal(0.02));
  }
  void visit(Visitor& v) override {
    if (weight_) v.parameter("head", *weight_);
    v.product("head", {{}, vocab_, d_model_});
  }

 private:
  Index vocab_, d_model_;
  std::optional<Parameter> weight_;
};

// V = 32, d = 8, 16 learned positions.
class Embeddings : public Module {
 public:
  explicit Embeddings(bool tied)
      : table_("embed", 32, 8), positions_("position", 16, 8), head_(32, 8, tied) {}
  void visit(Visitor& v) override {
    v.module("tokens", table_, "embedding");
    v.module("positions", positions_, "embedding");
    v.module("output", head_, "head");
  }

 private:
  Table table_, positions_;
  Head head_;
};

// E experts of one weight each, of which k are chosen.
class Mixture : public Module {
 public:
  Mixture(Index experts, Share active, Index width) : active_(active) {
    for (Index e = 0; e < experts; ++e) experts_.emplace_back(width, 1);
  }
  void visit(Visitor& v) override {
    for (Reused& e : experts_) v.module("expert", e, "experts", active_);
  }

 private:
  Share active_;
  std::vector<Reused> experts_;
};

template <class Part>
class Root : public Module {
 public:
  Root(Part& part, std::string group) : part_(&part), group_(std::move(group)) {}
  void visit(Visitor& v) override { v.module("part", *part_, group_); }

 private:
  Part* part_;
  std::string group_;
};

}  // namespace

// Row B5 of the reported faults.
TEST_CASE("a weight used three times is one weight and three products") {
  Reused reused(100, 3);
  Root root(reused, "dense_ffn");
  const Accounting a = account(root, 1);
  CHECK(a.total == 10'000);
  CHECK(a.product_flops == 60'000);
}

// Row B2: the lookup costs nothing, the head costs the same whether it is tied or not.
TEST_CASE("embedding lookups are free and the head is not") {
  for (const bool tied : {true, false}) {
    INFO("tied " << tied);
    Embeddings model(tied);
    const Accounting a = account(model, 1);
    CHECK(a.product_flops == 512);
    CHECK(a.total == (tied ? 256 + 128 : 512 + 128));
    CHECK(a.active_all == a.total);
    CHECK(a.active_without_input_embedding == (tied ? a.total : 256 + 128));
    CHECK(a.active_without_embeddings == 0);
  }
}

TEST_CASE("shares keep every digit") {
  // 3 of 7 of seven experts of 1,000,003^2 weights: a product of doubles would round.
  Mixture mixture(7, {3, 7}, 1'000'003);
  const Accounting a = account(mixture, 1);
  CHECK(a.total == 7 * 1'000'006'000'009);
  CHECK(a.active_all == 3 * 1'000'006'000'009);
  CHECK(a.ffn_flops == 2 * 3 * 1'000'006'000'009);
  CHECK_THAT(a.active_compute_ratio(), WithinAbs(3.0 / 7.0, 1e-15));
}

TEST_CASE("shares that do not add up are rounded to the nearest") {
  ExactSum sum;
  for (int i = 0; i < 8; ++i) sum.add(10, {2, 9});  // 8 * 20 / 9 = 17.78
  CHECK(sum.value() == 18);
  sum.add(1, {1, 2});
  sum.add(1, {1, 2});
  CHECK(sum.value() == 19);
}

TEST_CASE("a product in no module group is refused") {
  Reused reused(10, 1);
  CHECK_THROWS_WITH(account(reused, 1), Contains("w is in no module group"));
}

TEST_CASE("a count beyond 64 bits is refused") {
  ExactSum sum;
  CHECK_THROWS_WITH(sum.add(std::int64_t{1} << 62, {4, 5}), Contains("64 bits"));
}

TEST_CASE("attention is counted over the full square and under its mask") {
  Tally tally(1000);
  tally.attention(64, 64, true);
  tally.attention(64, 32, false);
  const Accounting a = tally.finish();
  CHECK(*a.attention_flops_full == 2 * 128 * 1000 + 2 * 96 * 1000);
  CHECK(*a.attention_flops_causal == 128 * 1000 + 2 * 96 * 1000);
}

TEST_CASE("the JSON of one model and of several") {
  Embeddings tied(true), untied(false);
  const CountedModel first{"tied", account(tied, 16)};
  const CountedModel second{"untied", account(untied, 16)};
  const auto one = nlohmann::json::parse(accounting_json({first}));
  CHECK(one.at("total") == 384);
  CHECK(one.at("product_flops_per_token") == 512);
  CHECK(one.at("attention_flops_per_token") == 0);
  CHECK(one.at("active_compute_ratio") == 1);
  CHECK(one.at("memory_bytes").at("training_float32") == 384 * 16);
  CHECK(one.at("modules").at(0).at("module") == "embedding");
  std::int64_t products = 0;
  for (const auto& module : one.at("modules"))
    products += module.at("product_flops_per_token").get<std::int64_t>();
  CHECK(products == 512);
  CHECK(one.at("conventions").size() > 5);
  const auto both = nlohmann::json::parse(accounting_json({first, second}));
  CHECK(both.at("models").at(1).at("relative_total") == 640.0 / 384.0);
  const std::string table = accounting_table({first, second});
  CHECK_THAT(table, Contains("1.6667x"));
}

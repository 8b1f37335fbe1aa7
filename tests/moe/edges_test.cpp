// The smallest and the largest inputs through every registered router and expert. The blocks are made from
// the fields that a kind declares as required, so that a new kind is tested as soon as it is registered.
#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "moe/registry.hpp"
#include "moe/routing_plan.hpp"
#include "tests/moe/minimal_block.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 6;

std::string expert_block(const std::string& kind, Index count, Index top_k) {
  const Description d = describe_fields(MoeConfig{});
  std::string expert = minimal(field_of(d, "experts").element.front(), kind, count);
  return fmt::format("kind: moe\nexperts: {{{}}}\nrouter: {{kind: top_k, top_k: {}{}}}\n", expert, top_k,
                     top_k == 1 ? ", normalize: false" : "");
}

struct Tokens {
  explicit Tokens(Index n, Index seq_len = 0) : batch(test::batch_of(n, seq_len)) {
    for (Index t = 0; t < n; ++t) ids.push_back(static_cast<std::int32_t>(t * 7 % 11));
    batch.ids = ids;
  }
  std::vector<std::int32_t> ids;
  TokenBatch batch;
};

ForwardContext context_of(bool training) {
  ForwardContext context = test::training_context();
  context.training = training;
  return context;
}

// Choices in range, different within a token, in order of falling weight; every number finite.
void check_output(const FfnOutput& output, Index n, Index num_experts) {
  REQUIRE(output.y.rows() == n);
  CHECK(Matrix(output.y.value()).allFinite());
  for (const AuxiliaryLoss& loss : output.losses) CHECK(std::isfinite(loss.value.item()));
  REQUIRE(output.routing);
  const RoutingRecord& record = *output.routing;
  CHECK(record.num_tokens == n);
  if (record.choice_offsets.empty()) return;  // soft: no choices
  REQUIRE(record.choice_offsets.size() == static_cast<std::size_t>(n) + 1);
  for (Index t = 0; t < n; ++t) {
    const auto begin = static_cast<std::size_t>(record.choice_offsets[static_cast<std::size_t>(t)]);
    const auto end = static_cast<std::size_t>(record.choice_offsets[static_cast<std::size_t>(t) + 1]);
    std::set<std::int32_t> seen;
    for (std::size_t c = begin; c < end; ++c) {
      CHECK(record.expert_of[c] >= 0);
      CHECK(record.expert_of[c] < num_experts);
      CHECK(seen.insert(record.expert_of[c]).second);
      if (c > begin) CHECK(record.weight_of[c] <= record.weight_of[c - 1]);
    }
  }
}

// Forward and backward, in training and in evaluation.
void run(const std::string& text, const Matrix& x, Index num_experts, Index seq_len = 0) {
  INFO(text << x.rows() << " tokens");
  const test::Ffn ffn(text, kWidth);
  test::randomise_parameters(*ffn.block);
  const Tokens tokens(x.rows(), seq_len);
  for (const bool training : {true, false}) {
    ffn.store->zero_grads();
    const Variable leaf(x, true);
    const FfnOutput output = ffn.block->forward(leaf, tokens.batch, context_of(training));
    check_output(output, x.rows(), num_experts);
    // In one pass: a second one ends where the first has been.
    Variable objective = ops::sum(output.y);
    for (const AuxiliaryLoss& loss : output.losses) objective = ops::add(objective, loss.value);
    backward(objective);
    CHECK(Matrix(leaf.grad()).allFinite());
    CHECK(Matrix(ffn.store->grads()).allFinite());
  }
}

}  // namespace

TEST_CASE("every router with no token, one token, and fewer tokens than experts", "[moe][edges]") {
  for (const std::string& kind : router_kinds().names()) {
    for (const Index n : {0, 1, 3}) run(router_block(kind, 8, 2), test::random_matrix(n, kWidth, 1), 8);
    run(router_block(kind, 8, 2), test::random_matrix(6, kWidth, 1), 8, 2);  // three sequences
  }
}

TEST_CASE("every router with one expert, and with all experts chosen", "[moe][edges]") {
  for (const std::string& kind : router_kinds().names()) {
    run(router_block(kind, 1, 1), test::random_matrix(5, kWidth, 2), 1);
    run(router_block(kind, 4, 4), test::random_matrix(5, kWidth, 2), 4);
  }
}

TEST_CASE("a router whose weights are all 1 with one expert a token is refused, any other learns",
          "[moe][edges]") {
  const Description d = describe_fields(MoeConfig{});
  int num_refused = 0, num_learning = 0;
  const auto check = [&](const std::string& text) {
    INFO(text);
    const std::string errors = test::ffn_config_errors(text);
    if (errors != "") {
      CHECK_THAT(errors, Contains("gives the router no gradient"));
      ++num_refused;
      return;
    }
    const test::Ffn ffn(text, kWidth);
    test::randomise_parameters(*ffn.block);
    const FfnOutput output = ffn.forward(test::random_matrix(12, kWidth, 8));
    backward(output.y, test::random_matrix(12, kWidth, 9));
    for (const NamedParameter& p : parameters(ffn.moe().router())) {
      INFO(p.path);
      CHECK(p.parameter->grad().norm() > 1e-6);
    }
    ++num_learning;
  };
  for (const Description::Form& form : field_of(d, "router").forms) {
    const auto has = [&](const char* name) {
      return std::any_of(form.fields.begin(), form.fields.end(),
                         [&](const Description::Field& f) { return f.name == name; });
    };
    if (!has("normalize") || form.kind == "frozen") continue;
    const auto block = [&](const std::string& options, const std::string& more = "") {
      std::string text = router_block(form.kind, 4, 1) + more;
      const std::string normalize = "normalize: false";
      return text.replace(text.find(normalize), normalize.size(), options);
    };
    check(block("normalize: false"));
    check(block("normalize: true"));
    if (has("max_k")) check(block("normalize: true, max_k: 1"));
    if (has("max_k")) check(block("normalize: false, max_k: 1"));
    const std::string drops = block("normalize: false", "capacity: {factor: 4, renormalize: true}\n");
    if (test::ffn_config_errors(drops).find("needs a router with a fixed top_k") == std::string::npos) {
      check(drops);
    }
  }
  CHECK(num_refused >= 7);
  CHECK(num_learning >= 8);
}

TEST_CASE("every router with 300 experts", "[moe][edges]") {
  for (const std::string& kind : router_kinds().names()) {
    run(router_block(kind, 300, 8), test::random_matrix(20, kWidth, 3), 300);
    run(router_block(kind, 300, 300), test::random_matrix(3, kWidth, 3), 300);
  }
}

TEST_CASE("every router with tokens that are all alike: ties, and one expert with all tokens",
          "[moe][edges]") {
  const Matrix alike = test::random_matrix(1, kWidth, 4).replicate(9, 1);
  for (const std::string& kind : router_kinds().names()) {
    run(router_block(kind, 4, 1), alike, 4);
    run(router_block(kind, 4, 2), Matrix::Zero(9, kWidth), 4);  // every logit is equal
  }
}

TEST_CASE(
    "every router: a NaN stops the run naming layer and token, or is passed on by a router that does not "
    "look",
    "[moe][edges]") {
  for (const std::string& kind : router_kinds().names()) {
    INFO(kind);
    const test::Ffn ffn(router_block(kind, 4, 2), kWidth, 1,
                        {.d_model = kWidth, .layer = 5, .num_layers = 6});
    const Tokens tokens(6);
    Matrix x = test::random_matrix(6, kWidth, 5);
    x(3, 2) = std::numeric_limits<Scalar>::quiet_NaN();
    const bool looks = !parameters(ffn.moe().router()).empty();
    for (const bool training : {true, false}) {
      const auto forward = [&] {
        return ffn.block->forward(Variable(x), tokens.batch, context_of(training));
      };
      if (looks) {
        CHECK_THROWS_AS(forward(), NonFiniteError);
        CHECK_THROWS_WITH(forward(), Contains("layer 5") && Contains("token 3"));
        continue;
      }
      const Matrix y = forward().y.value();
      for (Index t = 0; t < 6; ++t) CHECK(y.row(t).allFinite() == (t != 3));
    }
    // In a padding row it is nobody's business.
    const std::vector<std::uint8_t> real{1, 1, 1, 0, 1, 1};
    TokenBatch padded = tokens.batch;
    padded.is_real = real;
    const Matrix y = ffn.block->forward(Variable(x), padded, context_of(true)).y.value();
    for (Index t = 0; t < 6; ++t) {
      if (t != 3) CHECK(y.row(t).allFinite());
    }
  }
}

TEST_CASE("every router with padding alone", "[moe][edges]") {
  for (const std::string& kind : router_kinds().names()) {
    INFO(kind);
    const test::Ffn ffn(router_block(kind, 4, 2), kWidth);
    const Tokens tokens(4);
    const std::vector<std::uint8_t> real{0, 0, 0, 0};
    TokenBatch padded = tokens.batch;
    padded.is_real = real;
    for (const bool training : {true, false}) {
      const Variable x(test::random_matrix(4, kWidth, 6), true);
      const FfnOutput output = ffn.block->forward(x, padded, context_of(training));
      CHECK(output.routing->num_tokens == 0);
      CHECK(output.routing->expert_of.empty());
      CHECK(Matrix(output.y.value()).isZero(0));
      backward(output.y, Matrix::Ones(4, kWidth));
      CHECK(Matrix(x.grad()).isZero(0));
    }
  }
}

TEST_CASE("every expert with no token, one, fewer than experts, and all of them", "[moe][edges]") {
  for (const std::string& kind : expert_kinds().names()) {
    for (const Index n : {0, 1, 3, 40}) run(expert_block(kind, 8, 2), test::random_matrix(n, kWidth, 7), 8);
    run(expert_block(kind, 1, 1), test::random_matrix(200, kWidth, 7), 1);
    run(expert_block(kind, 4, 1), test::random_matrix(1, kWidth, 7).replicate(300, 1), 4);
    run(expert_block(kind, 300, 300), test::random_matrix(2, kWidth, 7), 300);
  }
}

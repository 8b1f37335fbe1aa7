// What the `ffn:` block refuses, and what it says.
#include "moe/config.hpp"

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/fields_describe.hpp"
#include "core/yaml.hpp"
#include "moe/registry.hpp"
#include "moe/routers/top_k.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/kind_examples.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

using namespace moelab;
using namespace moelab::moe;

namespace {

std::string errors(Index experts, const std::string& router, const std::string& more = "") {
  return test::ffn_config_errors(fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: {}, activation: relu, d_ff: 4}}\nrouter: {{{}}}\n{}\n",
      experts, router, more));
}

// The dotted paths of all keys.
void add_keys(const yaml::Node& node, const std::string& prefix, std::set<std::string>& keys) {
  for (const yaml::Node::Entry& entry : node.entries) {
    keys.insert(prefix + entry.key);
    add_keys(entry.value, prefix + entry.key + ".", keys);
  }
}

// Options of the kinds of one part (`router`, `experts`) that no example of theirs gives.
std::string options_without_example(const std::string& part,
                                    const std::map<std::string, std::vector<std::string>>& examples) {
  std::string missing;
  const Description mixture = describe_fields(MoeConfig{});
  for (const Description::Field& field : mixture.forms.front().fields) {
    if (field.name != part) continue;
    const Description& d = part == "experts" ? field.description.element.front() : field.description;
    for (const Description::Form& form : d.forms) {
      std::set<std::string> given;
      for (const std::string& yaml : examples.at(form.kind)) {
        Diagnostics diagnostics;
        const yaml::Node tree = yaml::parse(yaml, yaml::make_source("example", yaml), diagnostics);
        const yaml::Node* node = tree.find(part);
        REQUIRE(node != nullptr);
        add_keys(part == "experts" ? node->items.back() : *node, "", given);
      }
      Description one = d;
      one.forms = {form};
      for (const std::string& path : field_paths(one)) {
        if (given.count(path) == 0) missing += fmt::format("{}: {}\n", form.kind, path);
      }
    }
  }
  return missing;
}

}  // namespace

TEST_CASE("every example of the tests is a valid block", "[moe][config]") {
  for (const auto* examples : {&test::router_examples(), &test::expert_examples()}) {
    for (const auto& [kind, yamls] : *examples) {
      for (const std::string& yaml : yamls) CHECK(test::ffn_config_errors(yaml) == "");
    }
  }
}

TEST_CASE("every option of every kind is in one of its examples", "[moe][config]") {
  CHECK(options_without_example("router", test::router_examples()) == "");
  CHECK(options_without_example("experts", test::expert_examples()) == "");
  auto fewer = test::router_examples();
  fewer.at("soft") = {"router: {kind: soft, slots: 2}\n"};
  CHECK(options_without_example("router", fewer) == "soft: init_std\n");
}

TEST_CASE("defaults of the ffn block", "[moe][config]") {
  const FfnConfig config = test::ffn_config(
      "kind: moe\nexperts: {kind: ffn, count: 8, activation: swiglu, d_ff: 4}\nrouter: {kind: top_k, top_k: "
      "2}\n");
  CHECK(config.moe.experts.size() == 1);
  CHECK_FALSE(config.moe.capacity.has_value());
  CHECK_FALSE(config.moe.shared.has_value());
  CHECK(config.moe.losses.load_balance.weight == 0);
  const auto& router = dynamic_cast<const TopKOptions&>(config.moe.router.options());
  CHECK(router.scores.normalize);
  CHECK(router.scores.score == "softmax");
  CHECK(router.scores.projection.init_std == 0.02);
}

TEST_CASE("top_k must be between 1 and the number of experts", "[moe][config]") {
  CHECK_THAT(errors(2, "kind: top_k, top_k: 3"),
             Contains("3 is more than the number of experts, which is 2"));
  CHECK_THAT(errors(2, "kind: top_k, top_k: 0"), Contains("top_k"));
  CHECK_THAT(errors(2, "kind: hash, top_k: 3"), Contains("3 is more than the number of experts"));
  CHECK(errors(2, "kind: top_k, top_k: 2") == "");
}

TEST_CASE("top_k: 1 with normalize is refused, with the reason, except for one expert", "[moe][config]") {
  CHECK_THAT(errors(4, "kind: top_k, top_k: 1"), Contains("gives the router no gradient"));
  CHECK(errors(4, "kind: top_k, top_k: 1, normalize: false") == "");
  CHECK(errors(1, "kind: top_k, top_k: 1") == "");
}

TEST_CASE("what makes every weight the same is refused, with the reason", "[moe][config]") {
  CHECK_THAT(errors(4, "kind: top_p, p: 0.7, max_k: 1"), Contains("router.normalize") &&
                                                             Contains("max_k: 1 with normalize: true") &&
                                                             Contains("gives the router no gradient"));
  CHECK(errors(4, "kind: top_p, p: 0.7, max_k: 1, normalize: false") == "");
  CHECK(errors(1, "kind: top_p, p: 0.7, max_k: 1") == "");
  // The best of four probabilities is 1/4 at least.
  CHECK_THAT(errors(4, "kind: top_p, p: 0.25"), Contains("p: 0.25") && Contains("the router no gradient"));
  CHECK(errors(4, "kind: top_p, p: 0.26") == "");
  CHECK(errors(4, "kind: top_p, p: 0.25, normalize: false") == "");
  CHECK(errors(1, "kind: top_p, p: 0.7") == "");
  const std::string renormalize = "capacity: {factor: 1, renormalize: true}";
  for (const char* kind : {"top_k", "noisy_top_k", "sinkhorn"}) {
    const std::string router = fmt::format("kind: {}, normalize: false, top_k: ", kind);
    CHECK_THAT(errors(4, router + "1", renormalize),
               Contains("capacity.renormalize") && Contains("gives the router no gradient"));
    CHECK(errors(4, router + "2", renormalize) == "");
    CHECK(errors(1, router + "1", renormalize) == "");
    CHECK(errors(4, router + "1", "capacity: {factor: 1}") == "");
  }
  CHECK(errors(4, "kind: hash, top_k: 1", renormalize) == "");
}

TEST_CASE("sizes that nothing can be made of are refused, with the limit", "[moe][config]") {
  CHECK_THAT(errors(2000000000000, "kind: top_k, top_k: 2"),
             Contains("count: 2000000000000 is out of range") && Contains("at most 1000000"));
  CHECK_THAT(errors(4, "kind: top_k, top_k: 2", "granularity: 9223372036854775807"),
             Contains("granularity: 9223372036854775807 is out of range") && Contains("at most 1000000"));
  CHECK_THAT(errors(4, "kind: soft, slots: 2000000000000"), Contains("slots") && Contains("at most 1000000"));
  const auto of = [](Index count, Index granularity) {
    return test::ffn_config_errors(fmt::format(
        "kind: moe\nexperts: {{kind: ffn, count: {}, activation: relu, d_ff: 1000}}\nrouter: {{kind: top_k, "
        "top_k: 2}}\ngranularity: {}\n",
        count, granularity));
  };
  CHECK(of(1000, 1000) == "");
  CHECK_THAT(of(1001, 1000),
             Contains("1001000 experts") && Contains("granularity 1000") && Contains("at most 1000000"));
}

TEST_CASE("groups must divide the experts and leave enough of them", "[moe][config]") {
  CHECK_THAT(errors(8, "kind: top_k, top_k: 2, groups: {count: 3, keep: 1}"), Contains("3 equal groups"));
  CHECK_THAT(errors(8, "kind: top_k, top_k: 2, groups: {count: 4, keep: 5}"), Contains("keeps 5 of 4"));
  CHECK_THAT(errors(8, "kind: top_k, top_k: 2, groups: {count: 8, keep: 4}"),
             Contains("at least two experts"));
  CHECK(errors(8, "kind: top_k, top_k: 2, groups: {count: 8, keep: 4, score: max}") == "");
  CHECK_THAT(errors(8, "kind: top_k, top_k: 3, groups: {count: 4, keep: 1}"),
             Contains("fewer than top_k = 3"));
}

TEST_CASE("losses that the router gives no grounds for are refused", "[moe][config]") {
  CHECK_THAT(errors(4, "kind: hash, top_k: 2", "losses: {load_balance: 0.1}"), Contains("no scores"));
  CHECK_THAT(errors(4, "kind: round_robin, top_k: 2", "losses: {z: 0.1}"), Contains("no logits"));
  CHECK_THAT(errors(4, "kind: top_k, top_k: 2", "losses: {load_cv2: 0.1}"), Contains("noisy_top_k"));
  // The smooth load compares logits; groups and expert bias choose by something else.
  for (const char* option : {"groups: {count: 2, keep: 1}", "expert_bias: {rate: 0.1}"}) {
    const std::string router = fmt::format("kind: noisy_top_k, top_k: 2, {}", option);
    CHECK_THAT(errors(4, router, "losses: {load_cv2: 0.1}"),
               Contains("losses.load_cv2") && Contains("leave out groups and expert_bias"));
    CHECK(errors(4, router, "losses: {importance_cv2: 0.1}") == "");
  }
  CHECK(errors(4, "kind: noisy_top_k, top_k: 2", "losses: {load_cv2: 0.1}") == "");
  CHECK_THAT(errors(4, "kind: top_k, top_k: 1, normalize: false", "losses: {expert_diversity: 0.1}"),
             Contains("at least two experts"));
  CHECK(errors(4, "kind: hash, top_k: 2", "losses: {load_balance: 0}") == "");
  CHECK_THAT(errors(4, "kind: hash, top_k: 2", "capacity: {factor: 1, drop: batch_priority}"),
             Contains("scores"));
}

TEST_CASE("granularity must divide d_ff", "[moe][config]") {
  CHECK_THAT(errors(4, "kind: top_k, top_k: 2", "granularity: 3"), Contains("cannot be divided by 3"));
  CHECK(errors(4, "kind: top_k, top_k: 2", "granularity: 2") == "");
}

TEST_CASE("an unknown kind lists the known ones", "[moe][config]") {
  CHECK_THROWS_WITH(router_kinds().find("topk"), Contains("top_k") && Contains("round_robin"));
  CHECK_THROWS_WITH(expert_kinds().find("mlp"), Contains("ffn") && Contains("constant"));
  CHECK_THAT(errors(4, "kind: topk, top_k: 2"), Contains("top_k"));
}

TEST_CASE("code outside the library registers kinds of its own, once", "[moe][config]") {
  struct MyOptions : TopKOptions {
    std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<MyOptions>(*this); }
  };
  KindTable<RouterOptions> table = router_kinds();  // a copy: other tests see the library's kinds only
  table.add({"mine", "a router of my own", "", [] { return std::make_unique<MyOptions>(); }});
  CHECK(table.contains("mine"));
  CHECK_THROWS_WITH(table.add({"mine", "", "", [] { return std::make_unique<MyOptions>(); }}),
                    Contains("registered already"));
  Kinded<RouterOptions> kinded(table, "mine");
  kinded.as<MyOptions>().choice.top_k = 3;
  const Kinded<RouterOptions> copy = kinded;
  kinded.as<MyOptions>().choice.top_k = 4;
  CHECK(copy.options().traits(4).choices_per_token == 3);
}

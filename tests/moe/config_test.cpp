// What the `ffn:` block refuses, and what it says.
#include "moe/config.hpp"

#include "core/error.hpp"
#include "moe/registry.hpp"
#include "moe/routers/top_k.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/kind_examples.hpp"

#include <fmt/format.h>

using namespace moelab;
using namespace moelab::moe;

namespace {

std::string errors(Index experts, const std::string& router, const std::string& more = "") {
  return test::ffn_config_errors(fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: {}, activation: relu, d_ff: 4}}\nrouter: {{{}}}\n{}\n",
      experts, router, more));
}

}  // namespace

TEST_CASE("every example of the tests is a valid block", "[moe][config]") {
  for (const auto* examples : {&test::router_examples(), &test::expert_examples()}) {
    for (const auto& [kind, yamls] : *examples) {
      for (const std::string& yaml : yamls) CHECK(test::ffn_config_errors(yaml) == "");
    }
  }
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

#include "experiments/compare/condition.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;

namespace {

Comparison example() {
  Comparison c;
  c.variants.resize(3);
  const char* names[] = {"dense", "moe", "moe.big"};
  for (std::size_t i = 0; i < 3; ++i) c.variants[i].label = c.variants[i].variant = names[i];
  c.variants[1].delta.mean = -0.2;
  c.variants[2].delta.mean = 0.1;
  for (VariantResult& v : c.variants) v.mean = 3;
  return c;
}

}  // namespace

TEST_CASE("condition on the variants", "[compare]") {
  const Comparison c = example();
  CHECK(holds_for(parse_condition("delta > 0"), c) == "moe.big.delta = 0.1");
  CHECK(holds_for(parse_condition("delta>=0.1"), c) == "moe.big.delta = 0.1");
  CHECK(holds_for(parse_condition("delta < -0.5"), c).empty());
  CHECK(holds_for(parse_condition("moe.delta > 0"), c).empty());
  CHECK(holds_for(parse_condition(" moe.big.delta != 0 "), c) == "moe.big.delta = 0.1");
  CHECK(holds_for(parse_condition("dense.mean == 3"), c) == "dense.mean = 3");
  CHECK(holds_for(parse_condition("mean <= 3e0"), c) == "moe.mean = 3, moe.big.mean = 3");
  REQUIRE_THROWS_WITH(holds_for(parse_condition("delta_ci_low > 0"), c), Contains("cannot be decided"));
  REQUIRE_THROWS_WITH(holds_for(parse_condition("none.delta > 0"), c), Contains("no variant 'none'"));
  for (const char* text : {"", "delta", "delta > ", "delta => 0", "delta > x", "losses > 0", "delta > 1 2"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_condition(text), ConfigError);
  }
}

TEST_CASE("condition on a variant of a sweep, whose label has a relation", "[compare]") {
  Comparison c = example();
  c.variants[1].label = "moe lr=1e-1";
  c.variants[2].label = "moe lr=0.5";
  CHECK(holds_for(parse_condition("moe lr=0.5.delta > 0"), c) == "moe lr=0.5.delta = 0.1");
  CHECK(holds_for(parse_condition("moe lr=1e-1.delta == -0.2"), c) == "moe lr=1e-1.delta = -0.2");
  REQUIRE_THROWS_WITH(holds_for(parse_condition("moe lr=1.delta > 0"), c),
                      Contains("no variant 'moe lr=1'") && Contains("dense, moe lr=1e-1, moe lr=0.5"));
}

TEST_CASE("condition that could never hold is refused", "[compare]") {
  for (const char* text : {"delta > nan", "delta != NaN", "delta < -nan"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_condition(text), ConfigError);
  }
  Comparison alone = example();
  alone.variants.resize(1);
  REQUIRE_THROWS_WITH(holds_for(parse_condition("delta > 0"), alone),
                      Contains("nothing but the baseline dense"));
}

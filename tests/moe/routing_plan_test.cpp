#include "moe/routing_plan.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;
using namespace moelab::moe;

namespace {

// Token 0: experts 2, 0. Token 1: padding. Token 2: experts 2, 3. Token 3: expert 0.
Choices some_choices() { return {{0, 2, 2, 4, 5}, {2, 0, 2, 3, 0}}; }

}  // namespace

TEST_CASE("a plan lists the rows of each expert in token order", "[moe][plan]") {
  const RoutingPlan plan = make_routing_plan(some_choices(), {}, 5);
  CHECK(plan.num_tokens == 4);
  CHECK(plan.expert_offsets == std::vector<Index>{0, 2, 2, 4, 5, 5});
  CHECK(plan.token_of_slot == std::vector<Index>{0, 3, 0, 2, 2});
  CHECK(plan.choice_of_slot == std::vector<Index>{1, 4, 0, 2, 3});
  CHECK(plan.slot_of_choice == std::vector<Index>{2, 0, 3, 4, 1});
  CHECK(plan.rows_of(1) == 0);
}

TEST_CASE("dropped choices have no slot", "[moe][plan]") {
  const std::vector<std::uint8_t> kept{1, 0, 0, 1, 1};
  const RoutingPlan plan = make_routing_plan(some_choices(), kept, 4);
  CHECK(plan.expert_offsets == std::vector<Index>{0, 1, 1, 2, 3});
  CHECK(plan.token_of_slot == std::vector<Index>{3, 0, 2});
  CHECK(plan.slot_of_choice == std::vector<Index>{1, -1, -1, 2, 0});
}

TEST_CASE("a plan of no tokens is empty", "[moe][plan]") {
  const RoutingPlan plan = make_routing_plan({{0}, {}}, {}, 3);
  CHECK(plan.num_tokens == 0);
  CHECK(plan.num_slots() == 0);
  CHECK(plan.expert_offsets == std::vector<Index>(4, 0));
}

TEST_CASE("an expert out of range is an error that names it", "[moe][plan]") {
  CHECK_THROWS_WITH(make_routing_plan({{0, 1}, {3}}, {}, 3), Contains("expert 3 of 3"));
  CHECK_THROWS_WITH(make_routing_plan({{0, 1}, {-1}}, {}, 3), Contains("expert -1 of 3"));
}

TEST_CASE("choices are counted by expert", "[moe][plan]") {
  CHECK(count_choices(some_choices(), 5) == std::vector<std::int64_t>{2, 0, 2, 1, 0});
}

#include "moe/routing_plan.hpp"

#include "core/error.hpp"

namespace moelab::moe {

RoutingPlan make_routing_plan(const Choices& choices, std::span<const std::uint8_t> kept, Index num_experts) {
  const auto num_choices = static_cast<std::size_t>(choices.size());
  require(kept.empty() || kept.size() == num_choices, "[routing_plan] {} flags for {} choices", kept.size(),
          num_choices);
  RoutingPlan plan;
  plan.num_tokens = choices.num_tokens();
  plan.choice_offsets = choices.offsets;
  plan.slot_of_choice.assign(num_choices, -1);
  plan.expert_offsets.assign(static_cast<std::size_t>(num_experts) + 1, 0);

  const auto stays = [&](std::size_t c) { return kept.empty() || kept[c] != 0; };
  for (std::size_t c = 0; c < num_choices; ++c) {
    const std::int32_t expert = choices.expert_of[c];
    require(expert >= 0 && expert < num_experts, "[routing_plan] choice {} is expert {} of {}", c, expert,
            num_experts);
    if (stays(c)) ++plan.expert_offsets[static_cast<std::size_t>(expert) + 1];
  }
  for (std::size_t e = 1; e < plan.expert_offsets.size(); ++e) {
    plan.expert_offsets[e] += plan.expert_offsets[e - 1];
  }

  const auto num_slots = static_cast<std::size_t>(plan.expert_offsets.back());
  plan.token_of_slot.resize(num_slots);
  plan.choice_of_slot.resize(num_slots);
  std::vector<Index> next(plan.expert_offsets.begin(), plan.expert_offsets.end() - 1);
  for (std::size_t t = 0; t + 1 < choices.offsets.size(); ++t) {
    for (auto c = static_cast<std::size_t>(choices.offsets[t]);
         c < static_cast<std::size_t>(choices.offsets[t + 1]); ++c) {
      if (!stays(c)) continue;
      const Index slot = next[static_cast<std::size_t>(choices.expert_of[c])]++;
      plan.token_of_slot[static_cast<std::size_t>(slot)] = static_cast<Index>(t);
      plan.choice_of_slot[static_cast<std::size_t>(slot)] = static_cast<Index>(c);
      plan.slot_of_choice[c] = slot;
    }
  }
  return plan;
}

std::vector<std::int64_t> count_choices(const Choices& choices, Index num_experts) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(num_experts), 0);
  for (const std::int32_t e : choices.expert_of) ++counts[static_cast<std::size_t>(e)];
  return counts;
}

}  // namespace moelab::moe

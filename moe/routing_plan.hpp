// Who goes where: the kept choices of a batch, sorted by expert.
#pragma once

#include "moe/router.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace moelab::moe {

// Compressed rows by expert. A slot is a place in the sorted list; expert e owns the slots
// expert_offsets[e] .. expert_offsets[e + 1]. Within an expert, slots are in order of the choices, so by
// token.
struct RoutingPlan {
  Index num_tokens = 0;               // N, padding included
  std::vector<Index> expert_offsets;  // (E + 1)
  std::vector<Index> token_of_slot;   // (S)
  std::vector<Index> choice_of_slot;  // (S) index into the choices
  std::vector<Index> choice_offsets;  // (N + 1) as Choices::offsets
  std::vector<Index> slot_of_choice;  // (A) -1: dropped

  Index num_experts() const { return static_cast<Index>(expert_offsets.size()) - 1; }
  Index num_slots() const { return static_cast<Index>(token_of_slot.size()); }
  Index num_choices() const { return static_cast<Index>(slot_of_choice.size()); }
  Index rows_of(Index expert) const {
    const auto e = static_cast<std::size_t>(expert);
    return expert_offsets[e + 1] - expert_offsets[e];
  }
  std::span<const Index> tokens_of(Index first_slot, Index count) const {
    return {token_of_slot.data() + first_slot, static_cast<std::size_t>(count)};
  }
};

// Stable counting sort, O(A + E). `kept` (A) says which choices stay; empty: all. Error for an expert out of
// range.
RoutingPlan make_routing_plan(const Choices& choices, std::span<const std::uint8_t> kept, Index num_experts);

// Chosen experts, counted (E).
std::vector<std::int64_t> count_choices(const Choices& choices, Index num_experts);

}  // namespace moelab::moe

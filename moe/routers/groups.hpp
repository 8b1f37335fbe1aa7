// Group-limited routing: experts lie in groups of equal size, a token may use experts of its best groups only
// (DeepSeek-V2, section 2.2.2; DeepSeek-V3, section 2.1.2).
#pragma once

#include "core/fields.hpp"
#include "core/tensor.hpp"

#include <string>

namespace moelab::moe {

struct GroupsConfig {
  Index count = 1;                 // groups
  Index keep = 1;                  // groups that stay
  std::string score = "top2_sum";  // top2_sum | max, of the (biased) scores in the group
  void fields(FieldVisitor& v);
  // Conditions with the layer's numbers; paths relative to the `ffn:` block.
  void check(FieldVisitor& v, Index num_experts, Index top_k) const;
};

// Sets the values of experts outside the token's best groups to -inf. Between groups with equal
// scores the logits of the experts that made the score decide, then the lowest group. values, logits: (E).
void mask_groups(const GroupsConfig& groups, Scalar* values, const Scalar* logits, Index num_experts);

}  // namespace moelab::moe

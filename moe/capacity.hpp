// Expert capacity: an expert takes at most C rows of a micro-batch; the rest of the choices are dropped.
//
// C = max(min, ceil(factor * k * N / E)), never above N, with N the real tokens (GShard, Lepikhin et al.
// 2020, section 2.2; Switch Transformers, Fedus et al. 2021, equation 3).
#pragma once

#include "core/fields.hpp"
#include "core/random.hpp"
#include "core/tensor.hpp"
#include "moe/router.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moelab::moe {

struct CapacityConfig {
  double factor = 1.25;
  std::optional<double> eval_factor;
  Index min = 1;
  std::string drop = "position";  // position | probability | batch_priority | random
  bool renormalize = false;

  void fields(FieldVisitor& v);
};

// In exact arithmetic on the shortest decimal that reads back as `factor`, which is the decimal as written.
Index expert_capacity(double factor, Index top_k, Index num_tokens, Index num_experts, Index min);

// Which choices stay (1) when each expert keeps at most `capacity`. `weights` (A, 1) are final combine
// weights; `priority` (N) orders the tokens for batch_priority: falling, ties to the lowest, that of a token
// without choices may be anything; `stream` is for random.
std::vector<std::uint8_t> drop_choices(const std::string& order, const Choices& choices, In weights,
                                       const std::vector<Scalar>& priority, Index num_experts, Index capacity,
                                       const random::Stream& stream);

}  // namespace moelab::moe

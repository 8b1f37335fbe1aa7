// Loss-free balancing: a bias per expert that is added to the scores for the choice only, and moved once per
// optimizer step against the load (Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing", algorithm 1;
// DeepSeek-V3, section 2.1.2).
#pragma once

#include "core/fields.hpp"
#include "core/tensor.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace moelab::moe {

struct ExpertBiasConfig {
  double rate = 0.001;
  std::string update = "sign";  // sign | proportional
  bool center = false;
  void fields(FieldVisitor& v);
};

// bias (1, E) += rate * sign(mean(c) - c_e), or rate * (mean(c) - c_e) / mean(c); `center` subtracts the mean
// of the change. sign(0) = 0. Nothing happens without tokens.
void update_expert_bias(const ExpertBiasConfig& config, std::span<const std::int64_t> expert_tokens,
                        Matrix& bias);

}  // namespace moelab::moe

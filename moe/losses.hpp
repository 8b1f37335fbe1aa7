// Auxiliary losses of a mixture layer, from what the router returned. All are over real tokens only, and over
// the actual choices before any drop.
#pragma once

#include "core/fields.hpp"
#include "moe/ffn_block.hpp"
#include "moe/router.hpp"
#include "moe/routing_plan.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moelab::moe {

struct LossConfig {
  double weight = 0;
  void fields(FieldVisitor& v);
};

struct LoadBalanceConfig {
  double weight = 0;
  std::string scope = "batch";  // batch | sequence | global
  void fields(FieldVisitor& v);
};

// A loss with weight 0 is not computed.
struct LossesConfig {
  LoadBalanceConfig load_balance;
  LossConfig z;
  LossConfig importance_cv2;
  LossConfig load_cv2;
  LossConfig entropy;
  LossConfig expert_diversity;
  void fields(FieldVisitor& v);
  // The names of those with a weight other than 0, in order.
  std::vector<std::string> names() const;
  // Losses that the router gives no grounds for; paths relative to the `ffn:` block.
  void check(FieldVisitor& v, const RouterTraits& router, Index num_experts) const;
};

// What the losses of one layer and micro-batch are made of.
struct LossInput {
  const Routing& routing;
  const TokenBatch& batch;
  Index num_experts = 0;
  // Counts of chosen experts over the whole optimizer step, for the global scope; empty: this batch is all.
  std::span<const std::int64_t> step_counts;
  // The experts' outputs (S, d_model), for expert_diversity; undefined where that loss is off.
  Variable slots;
  const RoutingPlan& plan;
};

// The losses with a weight other than 0, in the order of LossesConfig. Each is 0 for a batch without real
// tokens.
//
// - load_balance: E sum_e f_e P_e, f_e the share of choices, P_e the mean of the normalised scores; no
//   gradient through f (Switch Transformers, Fedus et al. 2021, equations 4 to 6; with f over k choices so
//   that perfect balance gives 1). `sequence`: per sequence, then averaged (DeepSeek-V3, equation 17).
//   `global`: f over the whole step (Qiu et al. 2025, "Demons in the Detail").
// - z: mean of (logsumexp z)^2 (ST-MoE, Zoph et al. 2022, equation 5).
// - importance_cv2: squared coefficient of variation of the experts' summed scores (Shazeer et al. 2017,
//   equation 7).
// - load_cv2: the same of the smooth load of noisy top-k (appendix A, equations 8 to 11).
// - entropy: -H(mean score), the marginal entropy (Mod-Squad and MIMO losses).
// - expert_diversity: mean pairwise cosine of a token's expert outputs; a dropped or zero output counts 0.
std::vector<AuxiliaryLoss> auxiliary_losses(const LossesConfig& config, const LossInput& input);

}  // namespace moelab::moe

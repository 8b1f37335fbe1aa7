// Soft MoE (Puigcerver et al. 2023, section 2.1): no choice; every slot of a sequence is a mixture of its
// tokens, every token a mixture of the slots' outputs. Logits scale * normalise(x) . normalise(phi)
// (section 2.3). Padding enters no mixture.
//
// Not causal: a slot mixes the whole sequence.
#pragma once

#include "moe/router.hpp"

namespace moelab::moe {

// Parameters phi (E * slots, d_model), expert e owns rows e * slots onwards; scale (1, 1), starts at 1.
class SoftOptions : public RouterOptions {
 public:
  Index slots = 1;
  double init_std = 0.02;

  void fields(FieldVisitor& v) override;
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<SoftOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
  Share active_share(Index num_experts, Index context) const override;
  // Every token is in every slot.
  Share parameter_share(Index /*num_experts*/, Index /*context*/) const override { return {1, 1}; }
};

}  // namespace moelab::moe

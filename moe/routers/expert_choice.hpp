// Experts choose tokens (Zhou et al. 2022, "Mixture-of-Experts with Expert Choice Routing", section 3.2): in
// each sequence, each expert takes its C = ceil(n k / E) best of n real tokens by softmax-over-experts score.
// The weight is that score; `normalize` divides by the token's sum.
//
// Not causal: whether a token is taken depends on the whole sequence.
#pragma once

#include "moe/routers/projection.hpp"

namespace moelab::moe {

class ExpertChoiceOptions : public RouterOptions {
 public:
  Index top_k = 0;                // experts a token has on average
  std::string score = "softmax";  // the one there is; experiment files name it as for other routers
  bool normalize = false;
  double scale = 1;
  ProjectionOptions projection;

  void fields(FieldVisitor& v) override;
  void check(FieldVisitor& v, Index num_experts) const override;
  std::unique_ptr<RouterOptions> clone() const override {
    return std::make_unique<ExpertChoiceOptions>(*this);
  }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
  Share active_share(Index num_experts, Index context) const override;
  void multiply_top_k(Index factor) override { top_k *= factor; }
};

}  // namespace moelab::moe

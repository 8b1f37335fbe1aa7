// top_k with learned noise on the logits (Shazeer et al. 2017, equations 3 to 5).
//
// z = x Wg + eps * (softplus(x Wn) + 1e-2), eps from N(0, 1), in training only. Deviation: the paper keeps
// the standard deviation above 0 by initialisation; here 1e-2 is added.
#pragma once

#include "moe/routers/top_k.hpp"

namespace moelab::moe {

class NoisyTopKOptions : public TopKOptions {
 public:
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<NoisyTopKOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
};

}  // namespace moelab::moe

// BASE layers (Lewis et al. 2021): in training the tokens of a micro-batch are assigned so that every expert
// gets the same number (sizes differ by at most one) and the summed scores x . c_e are as large as possible;
// in evaluation each token goes to its best expert. y = a f(x) + (1 - a) x with a = sigmoid(x . c_e).
//
// Not causal: the assignment looks at all tokens of the micro-batch.
#pragma once

#include "moe/router.hpp"

namespace moelab::moe {

// Parameter weight (E, d_model): the centroids c.
class BaseOptions : public RouterOptions {
 public:
  double init_std = 0.02;

  void fields(FieldVisitor& v) override;
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<BaseOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
};

}  // namespace moelab::moe

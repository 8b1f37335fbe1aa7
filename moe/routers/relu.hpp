// ReLU routing (ReMoE, Wang et al. 2024): w = ReLU(z), no choice by rank. A loss term lambda * mean over
// tokens of sum_e w, with lambda adapted once a step, drives the sparsity to 1 - k/E (section 3.3): lambda
// *= 1.2 when the measured sparsity is below, /= 1.2 when above; it starts at 1e-8 and
// stays within [1e-12, 1e4], so that it comes back from any stretch of steps (not in the paper). lambda is
// state, `lambda` (1, 1).
#pragma once

#include "moe/routers/projection.hpp"

namespace moelab::moe {

// The name of the router's loss.
inline constexpr const char* kReluSparsity = "relu_sparsity";

class ReluOptions : public RouterOptions {
 public:
  Index top_k = 0;  // experts a token shall have on average
  ProjectionOptions projection;

  void fields(FieldVisitor& v) override;
  void check(FieldVisitor& v, Index num_experts) const override;
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<ReluOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
  std::vector<std::string> own_losses() const override { return {kReluSparsity}; }
  void multiply_top_k(Index factor) override { top_k *= factor; }
};

}  // namespace moelab::moe

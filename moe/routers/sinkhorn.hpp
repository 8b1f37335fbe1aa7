// Balanced choice by Sinkhorn's scaling (BASE-like routing of Clark et al. 2022, "Unified Scaling Laws",
// section 3.1; Megatron-LM): in training exp(z) is scaled until experts and tokens have uniform sums, and the
// k best of the scaled values are chosen; the weights come from z itself. In evaluation plain top_k.
//
// The scaling stops after 1000 iterations where it has not come to rest: rows that want the same expert by
// far are balanced by ever larger factors only. It ranks experts and nothing more, so the last factors serve.
//
// Not causal in training: the scaling looks at all tokens of the micro-batch.
#pragma once

#include "moe/routers/token_choice.hpp"

namespace moelab::moe {

class SinkhornOptions : public RouterOptions {
 public:
  Index top_k = 0;
  ScoreOptions scores;

  void fields(FieldVisitor& v) override;
  void check(FieldVisitor& v, Index num_experts) const override;
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<SinkhornOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
  void multiply_top_k(Index factor) override { top_k *= factor; }
};

// exp(logits) with rows summing to 1 / n and columns to 1 / E; stops when the mean absolute change of the
// column factors is below 1e-4, or after 1000 iterations. (n, E) -> (n, E)
Matrix sinkhorn(In logits);

}  // namespace moelab::moe

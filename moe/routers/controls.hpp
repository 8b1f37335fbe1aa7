// Routers without parameters: controls that tell what learned routing is worth. All weights are scale / k:
// they sum to `scale`, as those of top_k with `normalize` do, so that a control differs in the choice alone.
#pragma once

#include "moe/router.hpp"

namespace moelab::moe {

class ControlOptions : public RouterOptions {
 public:
  Index top_k = 0;
  double scale = 1;
  void fields(FieldVisitor& v) override;
  void check(FieldVisitor& v, Index num_experts) const override;
  RouterTraits traits(Index /*num_experts*/) const override {
    return {.choices_per_token = top_k,
            .has_logits = false,
            .has_scores = false,
            .scale = scale,
            .normalized = true};
  }
  void multiply_top_k(Index factor) override { top_k *= factor; }
};

// k different experts for each token id, fixed by hash(id, layer) (Hash Layers, Roller et al. 2021).
class HashOptions : public ControlOptions {
 public:
  RouterTraits traits(Index num_experts) const override {
    RouterTraits traits = ControlOptions::traits(num_experts);
    traits.needs_ids = true;
    return traits;
  }
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<HashOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
};

// k different random experts for each token, new on each step, from the run's random stream.
class RandomOptions : public ControlOptions {
 public:
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<RandomOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
};

// Token t, slot j: expert (t k + j) mod E.
class RoundRobinOptions : public ControlOptions {
 public:
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<RoundRobinOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
};

}  // namespace moelab::moe

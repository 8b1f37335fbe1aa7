// The k largest scores (Shazeer et al. 2017; Switch Transformers for k = 1; Mixtral: softmax and normalize;
// DeepSeek-V3: sigmoid, groups and expert bias). `frozen` is the same with a router that is never trained: a
// control that tells what learning to route is worth.
#pragma once

#include "moe/routers/token_choice.hpp"

namespace moelab::moe {

class TopKOptions : public RouterOptions {
 public:
  TopKFields choice;
  ScoreOptions scores;

  void fields(FieldVisitor& v) override;
  void check(FieldVisitor& v, Index num_experts) const override;
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<TopKOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index /*num_experts*/) const override;
  void multiply_top_k(Index factor) override { choice.top_k *= factor; }
};

class FrozenOptions : public TopKOptions {
 public:
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<FrozenOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
};

}  // namespace moelab::moe

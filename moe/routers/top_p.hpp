// As many experts as it takes (Huang et al. 2024, "Harder Tasks Need More Experts", equation 3): the smallest
// set, in falling order, whose softmax scores sum to at least p; at most max_k.
#pragma once

#include "moe/routers/token_choice.hpp"

#include <optional>

namespace moelab::moe {

class TopPOptions : public RouterOptions {
 public:
  double p = 0;
  std::optional<Index> max_k;
  ScoreOptions scores;

  void fields(FieldVisitor& v) override;
  void check(FieldVisitor& v, Index num_experts) const override;
  std::unique_ptr<RouterOptions> clone() const override { return std::make_unique<TopPOptions>(*this); }
  std::unique_ptr<Router> make(const RouterShape& shape) const override;
  RouterTraits traits(Index num_experts) const override;
  void multiply_top_k(Index factor) override;
};

}  // namespace moelab::moe

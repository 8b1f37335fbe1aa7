// The family of routers in which each token chooses its experts by learned scores: top_k, noisy_top_k, top_p,
// sinkhorn and frozen. A member decides which experts; logits, scores, groups, expert bias and weights are
// the same for all.
#pragma once

#include "moe/router.hpp"
#include "moe/routers/expert_bias.hpp"
#include "moe/routers/groups.hpp"
#include "moe/routers/projection.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab::moe {

// Fields of the family, except how many experts are chosen.
struct ScoreOptions {
  std::string score = "softmax";  // softmax | sigmoid | sqrt_softplus
  bool normalize = true;
  double scale = 1;
  ProjectionOptions projection;
  void fields(FieldVisitor& v);
};

// s over all experts from z. (N, E) -> (N, E)
Variable router_scores(const std::string& score, const Variable& logits);

struct TopKFields {
  Index top_k = 0;
  std::optional<GroupsConfig> groups;
  std::optional<ExpertBiasConfig> expert_bias;
  void fields(FieldVisitor& v);
  void check(FieldVisitor& v, Index num_experts, bool normalize) const;
};

// Adds the condition k <= E at `path`; that k is at least 1 is said by the range of its field.
void check_top_k(FieldVisitor& v, Index top_k, Index num_experts, std::string_view path = "router.top_k");

// Refuses top_k: 1 with normalize: true, which makes every weight 1, except for a single expert. `name` is
// that of the field in the message.
void check_top1_weight(FieldVisitor& v, Index top_k, bool normalize, Index num_experts,
                       std::string_view name = "top_k");

class TokenChoiceRouter : public Router {
 public:
  TokenChoiceRouter(const ScoreOptions& options, const RouterShape& shape, bool trainable = true);

  Routing route(const RouterInput& input) override;
  void visit(Visitor& visitor) override { projection_.visit(visitor); }

 protected:
  // The noise that the member adds to the logits, before the temperature; undefined: none. One that has noise
  // sets routing.noise_std, also where it adds none.
  virtual Variable noise(const Variable& /*router_input*/, const Variable& /*clean*/,
                         const RouterInput& /*input*/, Routing& /*routing*/) {
    return {};
  }
  // The experts of each real token, in any order, from the values of z and s.
  virtual Choices choose(const RouterInput& input, In logits, In scores) = 0;
  const RouterShape& shape() const { return shape_; }

 private:
  ScoreOptions options_;
  RouterShape shape_;
  Projection projection_;
};

// The k experts with the largest scores, with expert bias and groups. All scores rise with the logit, so
// without either the logits are compared, which still differ where scores have underflowed or reached 1; with
// either, the logit decides between equal scores.
class TopKChoice {
 public:
  TopKChoice(const TopKFields& fields, Index num_experts);
  // logits, scores: (N, E)
  Choices choose(const TokenBatch& batch, In logits, In scores) const;
  void visit(Visitor& visitor);
  void after_step(std::span<const std::int64_t> expert_tokens);

 private:
  TopKFields fields_;
  Matrix expert_bias_;  // (1, E), empty without the option
};

}  // namespace moelab::moe

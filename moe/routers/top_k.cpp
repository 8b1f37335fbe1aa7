#include "moe/routers/top_k.hpp"

namespace moelab::moe {

namespace {

class TopKRouter final : public TokenChoiceRouter {
 public:
  TopKRouter(const TopKOptions& options, const RouterShape& shape, bool trainable)
      : TokenChoiceRouter(options.scores, shape, trainable), choice_(options.choice, shape.num_experts) {}

  void visit(Visitor& visitor) override {
    TokenChoiceRouter::visit(visitor);
    choice_.visit(visitor);
  }
  void after_step(std::span<const std::int64_t> expert_tokens, std::int64_t /*num_tokens*/) override {
    choice_.after_step(expert_tokens);
  }

 protected:
  Choices choose(const RouterInput& input, In logits, In scores) override {
    return choice_.choose(input.batch, logits, scores);
  }

 private:
  TopKChoice choice_;
};

}  // namespace

void TopKOptions::fields(FieldVisitor& v) {
  choice.fields(v);
  scores.fields(v);
}

void TopKOptions::check(FieldVisitor& v, Index num_experts) const {
  choice.check(v, num_experts, scores.normalize);
}

std::unique_ptr<Router> TopKOptions::make(const RouterShape& shape) const {
  return std::make_unique<TopKRouter>(*this, shape, true);
}

RouterTraits TopKOptions::traits(Index /*num_experts*/) const {
  return {.choices_per_token = choice.top_k, .scale = scores.scale, .normalized = scores.normalize};
}

std::unique_ptr<Router> FrozenOptions::make(const RouterShape& shape) const {
  return std::make_unique<TopKRouter>(*this, shape, false);
}

}  // namespace moelab::moe

#include "moe/routers/expert_choice.hpp"

#include "core/ops/softmax.hpp"
#include "moe/routers/selection.hpp"
#include "moe/routers/token_choice.hpp"

#include <algorithm>
#include <vector>

namespace moelab::moe {

namespace {

// Tokens that an expert takes of a sequence with n real ones.
Index tokens_per_expert(Index n, Index top_k, Index num_experts) {
  return (n * top_k + num_experts - 1) / num_experts;
}

class ExpertChoiceRouter final : public Router {
 public:
  ExpertChoiceRouter(const ExpertChoiceOptions& options, const RouterShape& shape)
      : options_(options), shape_(shape), projection_(options.projection, shape) {}

  void visit(Visitor& visitor) override { projection_.visit(visitor); }

  Routing route(const RouterInput& input) override {
    Routing routing;
    const Variable clean = projection_.logits(projection_.input(input.x, input.context), input.context);
    routing.logits = projection_.finish(clean, {}, input.probe);
    require_finite_logits(routing.logits, input.batch, shape_.layer);
    routing.scores = ops::row_softmax(routing.logits);
    routing.choices = choose(input.batch, routing.scores.value());
    sort_by_score(routing.choices, routing.scores.value(), routing.logits.value());
    routing.weights = choice_weights(routing.scores, routing.choices, options_.normalize, options_.scale);
    return routing;
  }

 private:
  Choices choose(const TokenBatch& batch, In scores) const {
    std::vector<std::vector<std::int32_t>> experts_of(static_cast<std::size_t>(batch.size()));
    for (Index b = 0; b < batch.num_sequences; ++b) {
      std::vector<Index> tokens;
      for (Index t = b * batch.seq_len; t < (b + 1) * batch.seq_len; ++t) {
        if (is_real(batch, t)) tokens.push_back(t);
      }
      const auto n = static_cast<Index>(tokens.size());
      const Index take = tokens_per_expert(n, options_.top_k, shape_.num_experts);
      std::vector<Scalar> column(tokens.size());
      std::vector<std::int32_t> best(static_cast<std::size_t>(take));
      for (Index e = 0; e < shape_.num_experts; ++e) {
        for (std::size_t i = 0; i < tokens.size(); ++i) column[i] = scores(tokens[i], e);
        top_k_of(column.data(), n, take, best.data());
        for (const std::int32_t i : best) {
          experts_of[static_cast<std::size_t>(tokens[static_cast<std::size_t>(i)])].push_back(
              static_cast<std::int32_t>(e));
        }
      }
    }
    Choices choices;
    choices.offsets.push_back(0);
    for (const auto& experts : experts_of) {
      choices.expert_of.insert(choices.expert_of.end(), experts.begin(), experts.end());
      choices.offsets.push_back(choices.size());
    }
    return choices;
  }

  ExpertChoiceOptions options_;
  RouterShape shape_;
  Projection projection_;
};

}  // namespace

void ExpertChoiceOptions::fields(FieldVisitor& v) {
  v("top_k", top_k,
    {.help = "Experts a token has on average", .min = 1, .max = kMaxExperts, .required = true});
  v("score", score, {.help = "Function from logits to scores", .choices = {"softmax"}});
  v("normalize", normalize, {.help = "Divide the weights of a token by their sum"});
  v("scale", scale, {.help = "Factor on the weights", .min = 0, .min_exclusive = true});
  projection.fields(v);
}

void ExpertChoiceOptions::check(FieldVisitor& v, Index num_experts) const {
  check_top_k(v, top_k, num_experts);
}

std::unique_ptr<Router> ExpertChoiceOptions::make(const RouterShape& shape) const {
  return std::make_unique<ExpertChoiceRouter>(*this, shape);
}

RouterTraits ExpertChoiceOptions::traits(Index /*num_experts*/) const {
  return {.choices_per_token = top_k, .fixed_top_k = false, .scale = scale, .causal = false};
}

Share ExpertChoiceOptions::active_share(Index num_experts, Index context) const {
  return {tokens_per_expert(context, top_k, num_experts), context};
}

}  // namespace moelab::moe

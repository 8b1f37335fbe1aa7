#include "moe/routers/relu.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "moe/routers/selection.hpp"
#include "moe/routers/token_choice.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace moelab::moe {

namespace {

constexpr double kFirstLambda = 1e-8;
constexpr double kLambdaFactor = 1.2;
// A stretch of steps on one side of the target must not take lambda where the other side cannot bring it back
// soon, or at all: 0 * 1.2 is 0. At the floor the term is far below the rounding of any gradient, 51 steps
// from its start; at the ceiling it outweighs any task.
constexpr double kLeastLambda = 1e-12;
constexpr double kLargestLambda = 1e4;

class ReluRouter final : public Router {
 public:
  ReluRouter(const ReluOptions& options, const RouterShape& shape)
      : top_k_(options.top_k),
        shape_(shape),
        projection_(options.projection, shape),
        lambda_(Matrix::Constant(1, 1, static_cast<Scalar>(kFirstLambda))) {}

  void visit(Visitor& visitor) override {
    projection_.visit(visitor);
    visitor.state("lambda", lambda_);
  }

  Routing route(const RouterInput& input) override {
    Routing routing;
    const Variable clean = projection_.logits(projection_.input(input.x, input.context), input.context);
    routing.logits = projection_.finish(clean, {}, input.probe);
    require_finite_logits(routing.logits, input.batch, shape_.layer);
    routing.scores = ops::relu(routing.logits);
    routing.choices = choose(input.batch, routing.scores.value());
    sort_by_score(routing.choices, routing.scores.value(), routing.logits.value());
    routing.weights = choice_weights(routing.scores, routing.choices, false, 1);

    const auto num_tokens = static_cast<double>(real_tokens(input.batch).size());
    const Variable sum = ops::sum(routing.weights);
    routing.losses.push_back({kReluSparsity, static_cast<double>(lambda_(0, 0)),
                              num_tokens > 0 ? ops::scale(sum, 1 / num_tokens) : sum});
    return routing;
  }

  void after_step(std::span<const std::int64_t> expert_tokens, std::int64_t num_tokens) override {
    if (num_tokens == 0) return;
    // Density sum(c) / (N E) against k / E, in integers.
    const std::int64_t active = std::accumulate(expert_tokens.begin(), expert_tokens.end(), std::int64_t{0});
    const std::int64_t wanted = num_tokens * top_k_;
    double lambda = lambda_(0, 0);
    if (active > wanted) lambda *= kLambdaFactor;
    if (active < wanted) lambda /= kLambdaFactor;
    lambda_(0, 0) = static_cast<Scalar>(std::clamp(lambda, kLeastLambda, kLargestLambda));
  }

 private:
  static Choices choose(const TokenBatch& batch, In weights) {
    Choices choices;
    choices.offsets.push_back(0);
    for (Index t = 0; t < weights.rows(); ++t) {
      for (Index e = 0; is_real(batch, t) && e < weights.cols(); ++e) {
        if (weights(t, e) > 0) choices.expert_of.push_back(static_cast<std::int32_t>(e));
      }
      choices.offsets.push_back(choices.size());
    }
    return choices;
  }

  Index top_k_;
  RouterShape shape_;
  Projection projection_;
  Matrix lambda_;  // (1, 1)
};

}  // namespace

void ReluOptions::fields(FieldVisitor& v) {
  v("top_k", top_k,
    {.help = "Experts a token shall have on average", .min = 1, .max = kMaxExperts, .required = true});
  projection.fields(v);
}

void ReluOptions::check(FieldVisitor& v, Index num_experts) const { check_top_k(v, top_k, num_experts); }

std::unique_ptr<Router> ReluOptions::make(const RouterShape& shape) const {
  return std::make_unique<ReluRouter>(*this, shape);
}

RouterTraits ReluOptions::traits(Index /*num_experts*/) const {
  return {.choices_per_token = top_k, .fixed_top_k = false, .has_scores = false};
}

}  // namespace moelab::moe

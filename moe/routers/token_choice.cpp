#include "moe/routers/token_choice.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/math.hpp"
#include "core/ops/softmax.hpp"
#include "moe/routers/selection.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace moelab::moe {

namespace {

// As one operation: where softplus underflows to 0, the chain rule would multiply the slope of the root,
// which is infinite, with 0. The slope sigmoid(z) / (2 sqrt(softplus(z))) goes to 0 as e^{z/2} / 2.
Variable sqrt_softplus(const Variable& z) {
  const auto root = [](Scalar v) {
    return std::sqrt(std::max(v, Scalar{0}) + std::log1p(std::exp(-std::abs(v))));
  };
  return Variable::result(Matrix(z.value().unaryExpr(root)), {z}, [z](const Matrix& y, const Matrix& dy) {
    const auto slope = [](Scalar v, Scalar s) { return s > 0 ? math::sigmoid(v) / (2 * s) : Scalar{0}; };
    z.add_grad(Matrix(z.value().binaryExpr(y, slope).cwiseProduct(dy)));
  });
}

}  // namespace

void ScoreOptions::fields(FieldVisitor& v) {
  v("score", score,
    {.help = "Function from logits to scores", .choices = {"softmax", "sigmoid", "sqrt_softplus"}});
  v("normalize", normalize, {.help = "Divide the weights of a token by their sum"});
  v("scale", scale,
    {.help = "Factor on the weights (routed_scaling_factor)", .min = 0, .min_exclusive = true});
  projection.fields(v);
}

Variable router_scores(const std::string& score, const Variable& logits) {
  if (score == "softmax") return ops::row_softmax(logits);
  if (score == "sigmoid") return ops::sigmoid(logits);
  if (score == "sqrt_softplus") return sqrt_softplus(logits);
  fail("[router] unknown score '{}'; known: softmax, sigmoid, sqrt_softplus", score);
}

void TopKFields::fields(FieldVisitor& v) {
  v("top_k", top_k, {.help = "Experts a token is sent to", .min = 1, .max = kMaxExperts, .required = true});
  v("groups", groups, {.help = "Group-limited choice", .when_absent = "all experts compete"});
  v("expert_bias", expert_bias, {.help = "Loss-free balancing", .when_absent = "none"});
}

void TopKFields::check(FieldVisitor& v, Index num_experts, bool normalize) const {
  check_top_k(v, top_k, num_experts);
  check_top1_weight(v, top_k, normalize, num_experts);
  if (groups) groups->check(v, num_experts, top_k);
}

void check_top_k(FieldVisitor& v, Index top_k, Index num_experts, std::string_view path) {
  v.check(top_k <= num_experts, path,
          fmt::format("{} is more than the number of experts, which is {}", top_k, num_experts));
}

void check_top1_weight(FieldVisitor& v, Index top_k, bool normalize, Index num_experts,
                       std::string_view name) {
  v.check(top_k != 1 || !normalize || num_experts == 1, "router.normalize",
          fmt::format("{}: 1 with normalize: true makes every weight 1, so the task loss gives the router no "
                      "gradient; say normalize: false",
                      name));
}

TokenChoiceRouter::TokenChoiceRouter(const ScoreOptions& options, const RouterShape& shape, bool trainable)
    : options_(options), shape_(shape), projection_(options.projection, shape, trainable) {}

Routing TokenChoiceRouter::route(const RouterInput& input) {
  Routing routing;
  const Variable router_input = projection_.input(input.x, input.context);
  const Variable clean = projection_.logits(router_input, input.context);
  const Variable added = noise(router_input, clean, input, routing);
  routing.logits = projection_.finish(clean, added, input.probe);
  if (routing.noise_std.defined()) {
    routing.clean_logits = projection_.finish(clean, {}, {});
    routing.noise_std = projection_.finish(routing.noise_std, {}, {});
  }
  require_finite_logits(routing.logits, input.batch, shape_.layer);
  routing.scores = router_scores(options_.score, routing.logits);
  routing.choices = choose(input, routing.logits.value(), routing.scores.value());
  sort_by_score(routing.choices, routing.scores.value(), routing.logits.value());
  routing.weights = choice_weights(routing.scores, routing.choices, options_.normalize, options_.scale);
  return routing;
}

TopKChoice::TopKChoice(const TopKFields& fields, Index num_experts) : fields_(fields) {
  if (fields.expert_bias) expert_bias_.setZero(1, num_experts);
}

Choices TopKChoice::choose(const TokenBatch& batch, In logits, In scores) const {
  const Index num_experts = logits.cols();
  if (expert_bias_.size() == 0 && !fields_.groups) {
    return choose_fixed(batch, fields_.top_k, [&](Index t, std::int32_t* experts) {
      top_k_of(logits.row(t).data(), num_experts, fields_.top_k, experts);
    });
  }
  return choose_fixed(batch, fields_.top_k, [&](Index t, std::int32_t* experts) {
    Matrix biased = scores.row(t);
    const Scalar* z = logits.row(t).data();
    if (expert_bias_.size() > 0) biased += expert_bias_;
    if (fields_.groups) mask_groups(*fields_.groups, biased.data(), z, num_experts);
    top_k_of(biased.data(), z, num_experts, fields_.top_k, experts);
  });
}

void TopKChoice::visit(Visitor& visitor) {
  if (expert_bias_.size() > 0) visitor.state("expert_bias", expert_bias_);
}

void TopKChoice::after_step(std::span<const std::int64_t> expert_tokens) {
  if (fields_.expert_bias) update_expert_bias(*fields_.expert_bias, expert_tokens, expert_bias_);
}

}  // namespace moelab::moe

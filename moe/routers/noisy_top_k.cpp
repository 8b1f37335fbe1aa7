#include "moe/routers/noisy_top_k.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/matmul.hpp"
#include "moe/routers/selection.hpp"

namespace moelab::moe {

namespace {

constexpr double kLeastStd = 1e-2;

class NoisyTopKRouter final : public TokenChoiceRouter {
 public:
  NoisyTopKRouter(const NoisyTopKOptions& options, const RouterShape& shape)
      : TokenChoiceRouter(options.scores, shape),
        choice_(options.choice, shape.num_experts),
        noise_weight_(shape.num_experts, shape.d_model, Init::normal(options.scores.projection.init_std)) {}

  void visit(Visitor& visitor) override {
    TokenChoiceRouter::visit(visitor);
    visitor.parameter("noise_weight", noise_weight_);
    visitor.product("noise_weight", {{}, noise_weight_.rows(), noise_weight_.cols()});
    choice_.visit(visitor);
  }
  void after_step(std::span<const std::int64_t> expert_tokens, std::int64_t /*num_tokens*/) override {
    choice_.after_step(expert_tokens);
  }

 protected:
  Variable noise(const Variable& router_input, const Variable& clean, const RouterInput& input,
                 Routing& routing) override {
    const Variable raw = ops::matmul_transposed(router_input, Variable(noise_weight_, input.context.record));
    routing.noise_std = ops::add_constant(ops::softplus(raw), kLeastStd);
    if (!input.context.training) return {};
    return ops::multiply(routing.noise_std, Variable(normal_numbers(input, clean.rows())));
  }

  Choices choose(const RouterInput& input, In logits, In scores) override {
    return choice_.choose(input.batch, logits, scores);
  }

 private:
  Matrix normal_numbers(const RouterInput& input, Index rows) const {
    if (input.probe.noise != nullptr) {
      require(input.probe.noise->rows() == rows && input.probe.noise->cols() == shape().num_experts,
              "[noisy_top_k] noise ({}, {}) for logits ({}, {})", input.probe.noise->rows(),
              input.probe.noise->cols(), rows, shape().num_experts);
      return *input.probe.noise;
    }
    Matrix numbers(rows, shape().num_experts);
    random::fill_normal(numbers, input.context.stream("noise/" + router_path(shape().layer)), 1);
    return numbers;
  }

  TopKChoice choice_;
  Parameter noise_weight_;
};

}  // namespace

std::unique_ptr<Router> NoisyTopKOptions::make(const RouterShape& shape) const {
  return std::make_unique<NoisyTopKRouter>(*this, shape);
}

RouterTraits NoisyTopKOptions::traits(Index num_experts) const {
  RouterTraits traits = TopKOptions::traits(num_experts);
  traits.has_noise = true;
  traits.by_logits = !choice.groups && !choice.expert_bias;
  return traits;
}

}  // namespace moelab::moe

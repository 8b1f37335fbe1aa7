#include "moe/routers/base.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/matmul.hpp"
#include "moe/routers/balanced_assignment.hpp"
#include "moe/routers/selection.hpp"

#include <vector>

namespace moelab::moe {

namespace {

class BaseRouter final : public Router {
 public:
  BaseRouter(const BaseOptions& options, const RouterShape& shape)
      : shape_(shape), weight_(shape.num_experts, shape.d_model, Init::normal(options.init_std)) {}

  void visit(Visitor& visitor) override {
    visitor.parameter("weight", weight_);
    visitor.product("weight", {{}, weight_.rows(), weight_.cols()});
  }

  Routing route(const RouterInput& input) override {
    Routing routing;
    routing.logits = ops::matmul_transposed(input.x, Variable(weight_, input.context.record));
    if (input.probe.logits_offset.defined())
      routing.logits = ops::add(routing.logits, input.probe.logits_offset);
    require_finite_logits(routing.logits, input.batch, shape_.layer);
    const std::vector<Index> tokens = real_tokens(input.batch);
    const std::vector<std::int32_t> expert_of =
        assign(routing.logits.value(), tokens, input.context.training);

    routing.choices.offsets.push_back(0);
    routing.choices.expert_of = expert_of;
    for (Index t = 0; t < input.batch.size(); ++t) {
      routing.choices.offsets.push_back(routing.choices.offsets.back() + (is_real(input.batch, t) ? 1 : 0));
    }
    routing.weights =
        ops::sigmoid(ops::gather_entries(routing.logits, tokens, expert_of_choice(routing.choices)));
    const Variable rest = ops::add_constant(ops::negate(routing.weights), 1);
    routing.pass_through = ops::scatter_rows(rest, tokens, input.batch.size());
    return routing;
  }

 private:
  static std::vector<std::int32_t> assign(In logits, const std::vector<Index>& tokens, bool balanced) {
    Matrix real(static_cast<Index>(tokens.size()), logits.cols());
    for (std::size_t i = 0; i < tokens.size(); ++i) real.row(static_cast<Index>(i)) = logits.row(tokens[i]);
    if (balanced) return balanced_assignment(real);
    std::vector<std::int32_t> best(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      top_k_of(real.row(static_cast<Index>(i)).data(), real.cols(), 1, &best[i]);
    }
    return best;
  }

  RouterShape shape_;
  Parameter weight_;
};

}  // namespace

void BaseOptions::fields(FieldVisitor& v) {
  v("init_std", init_std, {.help = "Standard deviation of the initial centroids", .min = 0});
}

std::unique_ptr<Router> BaseOptions::make(const RouterShape& shape) const {
  return std::make_unique<BaseRouter>(*this, shape);
}

RouterTraits BaseOptions::traits(Index /*num_experts*/) const {
  return {.choices_per_token = 1, .has_scores = false, .causal = false};
}

}  // namespace moelab::moe

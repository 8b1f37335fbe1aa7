#include "moe/moe_layer.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/shape.hpp"
#include "moe/cost.hpp"
#include "moe/losses.hpp"
#include "moe/padding.hpp"
#include "moe/routers/selection.hpp"
#include "moe/visit_expert.hpp"

#include <algorithm>

namespace moelab::moe {

namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// The largest score of each token: the order of batch_priority.
std::vector<Scalar> best_scores(const Routing& routing) {
  std::vector<Scalar> best;
  if (!routing.scores.defined()) return best;
  const ConstMatrixView s = routing.scores.value();
  for (Index t = 0; t < s.rows(); ++t) best.push_back(s.row(t).maxCoeff());
  return best;
}

}  // namespace

void MoeLayer::SharedGate::visit(Visitor& visitor) {
  visitor.parameter("gate", weight);
  visitor.product("gate", {{}, weight.rows(), weight.cols()});
}

MoeLayer::MoeLayer(const MoeConfig& config, const FfnShape& shape)
    : config_(config), traits_(config.router.options().traits(config.num_experts())), layer_(shape.layer) {
  ExpertShape expert_shape{shape.d_model, shape.layer, shape.num_layers, 0};
  for (const ExpertGroup& group : config.experts) {
    for (Index i = 0; i < group.count; ++i) {
      experts_.push_back(group.expert.options().make(expert_shape));
      expert_flops_.push_back(flops_per_row(*experts_.back()));
      ++expert_shape.expert;
    }
  }
  router_ = config.router.options().make({shape.d_model, num_experts(), shape.layer});
  if (!config.shared) return;
  for (Index i = 0; i < config.shared->count; ++i) {
    shared_.push_back(config.shared->expert.make(expert_shape));
    shared_flops_ += flops_per_row(*shared_.back());
    ++expert_shape.expert;
  }
  if (config.shared->gate == "sigmoid") {
    shared_gate_.emplace(shape.d_model);
    shared_flops_ += flops_per_row(*shared_gate_);
  }
}

void MoeLayer::visit(Visitor& visitor) {
  visitor.module("router", *router_, "router");
  const RouterOptions& options = config_.router.options();
  const Share active = options.active_share(num_experts(), visitor.context());
  const Share used = options.parameter_share(num_experts(), visitor.context());
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    visit_expert(visitor, fmt::format("experts.{}", e), *experts_[e], used, active);
  }
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    visitor.module(fmt::format("shared.{}", i), *shared_[i], "shared_experts");
  }
  if (shared_gate_) visitor.module("shared", *shared_gate_, "shared_experts");
}

bool MoeLayer::needs_step_counts() const {
  return config_.losses.load_balance.weight != 0 && config_.losses.load_balance.scope == "global";
}

void MoeLayer::before_step(std::span<const std::int64_t> expert_tokens) {
  require(static_cast<Index>(expert_tokens.size()) == num_experts(), "[moe_layer] counts of {} experts of {}",
          expert_tokens.size(), num_experts());
  step_counts_.assign(expert_tokens.begin(), expert_tokens.end());
}

void MoeLayer::after_step(std::span<const std::int64_t> expert_tokens, std::int64_t num_tokens) {
  step_counts_.clear();
  router_->after_step(expert_tokens, num_tokens);
}

bool MoeLayer::is_causal() const {
  // With k = 1 an expert fills up in token order; with more, a later token's first choice comes before this
  // one's second.
  const bool capacity_is_causal =
      !config_.capacity || (config_.capacity->drop == "position" && traits_.choices_per_token == 1);
  return traits_.causal && capacity_is_causal;
}

Index MoeLayer::capacity(Index num_tokens, bool training) const {
  if (!config_.capacity) return 0;
  const CapacityConfig& c = *config_.capacity;
  const double factor = training ? c.factor : c.eval_factor.value_or(c.factor);
  return expert_capacity(factor, traits_.choices_per_token, num_tokens, num_experts(), c.min);
}

FfnOutput MoeLayer::forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context) {
  return forward(x, batch, context, RouterProbe{});
}

FfnOutput MoeLayer::forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context,
                            const RouterProbe& probe) {
  require(x.rows() == batch.size(), "[moe_layer] {} rows for {} tokens", x.rows(), batch.size());
  const Variable tokens = zero_padding(x, batch);
  Routing routing = router_->route({tokens, batch, context, probe});
  FfnOutput output = routing.mixing ? run_mixing(tokens, batch, context, routing)
                                    : run_choices(tokens, batch, context, routing);
  for (AuxiliaryLoss& loss : routing.losses) output.losses.push_back(std::move(loss));
  output.y = add_shared(tokens, output.y, context);
  return output;
}

FfnOutput MoeLayer::run_choices(const Variable& x, const TokenBatch& batch, const ForwardContext& context,
                                const Routing& routing) {
  RoutingRecord record = make_record(routing, batch);
  record.capacity = capacity(record.num_tokens, context.training);
  record.kept = kept_choices(routing, batch, record.capacity, context);

  const auto plan =
      std::make_shared<const RoutingPlan>(make_routing_plan(routing.choices, record.kept, num_experts()));
  const Variable weights = combine_weights(routing, record.kept);
  FfnOutput output;
  Variable slots;
  if (config_.losses.expert_diversity.weight != 0) {  // the loss that reads the experts' outputs
    slots = run_experts(experts_, x, plan, context);
    output.y = combine(slots, weights, plan);
  } else {
    output.y = run_and_combine(experts_, x, weights, plan, context);
  }
  if (routing.pass_through.defined()) output.y = ops::add(output.y, ops::multiply(routing.pass_through, x));
  std::span<const std::int64_t> step_counts;
  if (context.training) step_counts = step_counts_;
  output.losses =
      auxiliary_losses(config_.losses, {routing, batch, num_experts(), step_counts, slots, *plan});

  record.combine_of.reserve(record.kept.size());
  for (Index c = 0; c < weights.rows(); ++c) {
    record.combine_of.push_back(record.kept[at(c)] != 0 ? weights.value()(c, 0) : 0);
  }
  std::vector<Index> rows;
  for (Index e = 0; e < num_experts(); ++e) rows.push_back(plan->rows_of(e));
  count_flops(record, rows);
  output.routing = std::move(record);
  return output;
}

// Soft MoE: every slot of a sequence is a mixture of its tokens, every token a mixture of the slots' outputs.
FfnOutput MoeLayer::run_mixing(const Variable& x, const TokenBatch& batch, const ForwardContext& context,
                               const Routing& routing) {
  const SlotMixing& mixing = *routing.mixing;
  const Index slots = num_experts() * mixing.slots_per_expert;  // of a sequence
  std::vector<Variable> inputs;
  Choices choices;  // slot j of a sequence goes to expert j / slots_per_expert
  choices.offsets.push_back(0);
  for (Index b = 0; b < batch.num_sequences; ++b) {
    const Variable rows = ops::slice_rows(x, b * batch.seq_len, batch.seq_len);
    const Variable dispatch = ops::slice_rows(mixing.dispatch, b * batch.seq_len, batch.seq_len);
    inputs.push_back(ops::matmul(ops::transpose(dispatch), rows));
    for (Index j = 0; j < slots; ++j) {
      choices.expert_of.push_back(static_cast<std::int32_t>(j / mixing.slots_per_expert));
      choices.offsets.push_back(choices.size());
    }
  }
  const auto plan = std::make_shared<const RoutingPlan>(make_routing_plan(choices, {}, num_experts()));
  FfnOutput output;
  if (inputs.empty()) {
    output.y = Variable(Matrix::Zero(x.rows(), x.cols()));
  } else {
    const Variable answers = ops::gather_rows(run_experts(experts_, ops::concat_rows(inputs), plan, context),
                                              plan->slot_of_choice);
    std::vector<Variable> parts;
    for (Index b = 0; b < batch.num_sequences; ++b) {
      parts.push_back(ops::matmul(ops::slice_rows(mixing.combine, b * batch.seq_len, batch.seq_len),
                                  ops::slice_rows(answers, b * slots, slots)));
    }
    output.y = ops::concat_rows(parts);
  }
  RoutingRecord record = make_record(routing, batch);
  const std::vector<Index> rows(experts_.size(), batch.num_sequences * mixing.slots_per_expert);
  count_flops(record, rows);
  output.routing = std::move(record);
  return output;
}

std::vector<std::uint8_t> MoeLayer::kept_choices(const Routing& routing, const TokenBatch& batch,
                                                 Index capacity, const ForwardContext& context) const {
  if (!config_.capacity) return std::vector<std::uint8_t>(routing.choices.expert_of.size(), 1);
  const std::vector<Scalar> priority = best_scores(routing);
  require(batch.size() == routing.choices.num_tokens(), "[moe_layer] choices of {} tokens of {}",
          routing.choices.num_tokens(), batch.size());
  return drop_choices(config_.capacity->drop, routing.choices, routing.weights.value(), priority,
                      num_experts(), capacity, context.stream("drop/" + router_path(layer_)));
}

Variable MoeLayer::combine_weights(const Routing& routing, const std::vector<std::uint8_t>& kept) const {
  if (!config_.capacity || !config_.capacity->renormalize) return routing.weights;
  Matrix keep(routing.weights.rows(), 1);
  for (Index c = 0; c < keep.rows(); ++c) keep(c, 0) = kept[at(c)];
  const std::vector<Index> tokens = token_of_choice(routing.choices);
  const Variable weights = ops::multiply(routing.weights, Variable(std::move(keep)));
  const Variable total = ops::scatter_rows(weights, tokens, routing.choices.num_tokens());
  return ops::scale(ops::divide(weights, ops::add_constant(ops::gather_rows(total, tokens), 1e-20)),
                    traits_.scale);
}

Variable MoeLayer::add_shared(const Variable& x, const Variable& y, const ForwardContext& context) {
  Variable sum;
  for (const auto& expert : shared_) {
    const Variable output = run_expert(*expert, x, context);
    sum = sum.defined() ? ops::add(sum, output) : output;
  }
  if (!sum.defined()) return y;
  if (shared_gate_) {
    const Variable logit = ops::matmul_transposed(x, Variable(shared_gate_->weight, context.record));
    sum = ops::multiply(ops::sigmoid(logit), sum);
  }
  return ops::add(y, sum);
}

RoutingRecord MoeLayer::make_record(const Routing& routing, const TokenBatch& batch) const {
  RoutingRecord record;
  const std::vector<Index> real = real_tokens(batch);
  record.num_tokens = static_cast<Index>(real.size());
  record.num_experts = num_experts();
  if (routing.scores.defined()) {
    record.scores.setZero(routing.scores.rows(), routing.scores.cols());
    for (const Index t : real) record.scores.row(t) = routing.scores.value().row(t);
  }
  if (routing.mixing) return record;
  record.choice_offsets = routing.choices.offsets;
  record.expert_of = routing.choices.expert_of;
  const ConstMatrixView weights = routing.weights.value();
  record.weight_of.assign(weights.data(), weights.data() + weights.size());
  return record;
}

void MoeLayer::count_flops(RoutingRecord& record, std::span<const Index> rows_of_expert) const {
  const auto tokens = static_cast<double>(record.num_tokens);
  record.active_flops = record.full_flops = tokens * shared_flops_;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    record.active_flops += static_cast<double>(rows_of_expert[e]) * expert_flops_[e];
    record.full_flops += tokens * expert_flops_[e];
  }
}

}  // namespace moelab::moe

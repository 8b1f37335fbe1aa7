#include "moe/dispatch.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace moelab::moe {

namespace {

constexpr Index kTokenBlock = 64;  // tokens of a task where rows are added or multiplied

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// One batch through the experts: a pass of each expert that has rows, and the tasks that its blocks make.
class Dispatch {
 public:
  Dispatch(const std::vector<Expert*>& experts, Variable x, std::shared_ptr<const RoutingPlan> plan,
           const ForwardContext& context)
      : x_(std::move(x)),
        plan_(std::move(plan)),
        context_(context),
        operands_(OperandRows::of(x_.value(), context.precision)) {
    if (!plan_) {
      every_row_.resize(at(x_.rows()));
      std::iota(every_row_.begin(), every_row_.end(), Index{0});
    }
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const Index first = plan_ ? plan_->expert_offsets[e] : 0;
      const Index count = plan_ ? plan_->rows_of(static_cast<Index>(e)) : x_.rows();
      if (count > 0) add_pass(*experts[e], first, count);
    }
  }

  // The experts' parameters get their gradients from the passes; an empty leaf stands for them, so that the
  // backward pass takes place even where x needs no gradient.
  std::vector<Variable> inputs() const { return {x_, Variable(Matrix(), context_.record)}; }

  Matrix forward() {
    run_pieces(&ExpertPass::num_preparations, &ExpertPass::prepare_forward);
    Matrix y(num_slots(), x_.cols());
    parallel::for_each(static_cast<Index>(blocks_.size()), [&](Index i) {
      const Block& block = blocks_[at(i)];
      block.pass->forward(block.first_row, y.middleRows(block.first_slot, block.rows));
    });
    return y;
  }

  void backward(const Matrix& dy) {
    run_pieces(&ExpertPass::num_preparations, &ExpertPass::prepare_backward);
    Matrix dx(num_slots(), x_.cols());
    parallel::for_each(static_cast<Index>(blocks_.size()), [&](Index i) {
      const Block& block = blocks_[at(i)];
      block.pass->backward(block.first_row, dy.middleRows(block.first_slot, block.rows),
                           dx.middleRows(block.first_slot, block.rows));
    });
    run_pieces(&ExpertPass::num_gradient_pieces, &ExpertPass::add_parameter_gradients);
    passes_.clear();
    if (x_.requires_grad()) x_.add_grad(plan_ ? sum_slots(dx) : std::move(dx));
  }

 private:
  struct Block {
    ExpertPass* pass;
    Index first_row;   // of the pass
    Index first_slot;  // of all
    Index rows;
  };

  Index num_slots() const { return plan_ ? plan_->num_slots() : x_.rows(); }

  void add_pass(Expert& expert, Index first_slot, Index count) {
    const std::vector<Index>& tokens = plan_ ? plan_->token_of_slot : every_row_;
    passes_.push_back(
        expert.begin({x_.value(), operands_, {tokens.data() + first_slot, at(count)}, context_}));
    ExpertPass* pass = passes_.back().get();
    const Index block = pass->block_rows();
    for (Index r = 0; r < count; r += block) {
      blocks_.push_back({pass, r, first_slot + r, std::min(block, count - r)});
    }
  }

  // The pieces of one kind of work of all passes, at the same time.
  void run_pieces(Index (ExpertPass::*count)() const, void (ExpertPass::*work)(Index)) const {
    std::vector<std::pair<ExpertPass*, Index>> pieces;
    for (const auto& pass : passes_) {
      for (Index p = 0; p < (pass.get()->*count)(); ++p) pieces.emplace_back(pass.get(), p);
    }
    parallel::for_each(static_cast<Index>(pieces.size()), [&](Index i) {
      const auto& [pass, piece] = pieces[at(i)];
      (pass->*work)(piece);
    });
  }

  // (S, d) -> (N, d): each token's slots added in the order of its choices.
  Matrix sum_slots(const Matrix& slots) const {
    Matrix sums = Matrix::Zero(x_.rows(), x_.cols());
    parallel::for_blocks(sums.rows(), kTokenBlock, [&](Index begin, Index end) {
      for (Index t = begin; t < end; ++t) {
        for (Index c = plan_->choice_offsets[at(t)]; c < plan_->choice_offsets[at(t + 1)]; ++c) {
          const Index slot = plan_->slot_of_choice[at(c)];
          if (slot >= 0) sums.row(t) += slots.row(slot);
        }
      }
    });
    return sums;
  }

  Variable x_;
  std::shared_ptr<const RoutingPlan> plan_;  // null: one expert, which takes every row as it lies
  std::vector<Index> every_row_;
  ForwardContext context_;
  OperandRows operands_;  // x
  std::vector<std::unique_ptr<ExpertPass>> passes_;
  std::vector<Block> blocks_;
};

Variable run(const std::vector<Expert*>& experts, const Variable& x, std::shared_ptr<const RoutingPlan> plan,
             const ForwardContext& context) {
  auto dispatch = std::make_shared<Dispatch>(experts, x, std::move(plan), context);
  Matrix y = dispatch->forward();
  return Variable::result(std::move(y), dispatch->inputs(),
                          [dispatch](const Matrix&, const Matrix& dy) { dispatch->backward(dy); });
}

}  // namespace

Variable run_experts(const Experts& experts, const Variable& x, std::shared_ptr<const RoutingPlan> plan,
                     const ForwardContext& context) {
  require(plan->num_tokens == x.rows(), "[dispatch] a plan for {} tokens, {} rows", plan->num_tokens,
          x.rows());
  require(plan->num_experts() == static_cast<Index>(experts.size()), "[dispatch] a plan for {} experts of {}",
          plan->num_experts(), experts.size());
  std::vector<Expert*> pointers;
  for (const auto& expert : experts) pointers.push_back(expert.get());
  return run(pointers, x, std::move(plan), context);
}

Variable run_expert(Expert& expert, const Variable& x, const ForwardContext& context) {
  return run({&expert}, x, nullptr, context);
}

Variable combine(const Variable& slots, const Variable& weights, std::shared_ptr<const RoutingPlan> plan) {
  require(weights.rows() == plan->num_choices(), "[dispatch] {} weights for {} choices", weights.rows(),
          plan->num_choices());
  require(slots.rows() == plan->num_slots(), "[dispatch] {} rows for {} slots", slots.rows(),
          plan->num_slots());
  Matrix y = Matrix::Zero(plan->num_tokens, slots.cols());
  {
    const ConstMatrixView s = slots.value();
    const ConstMatrixView w = weights.value();
    parallel::for_blocks(y.rows(), kTokenBlock, [&](Index begin, Index end) {
      for (Index t = begin; t < end; ++t) {
        for (Index c = plan->choice_offsets[at(t)]; c < plan->choice_offsets[at(t + 1)]; ++c) {
          const Index slot = plan->slot_of_choice[at(c)];
          if (slot >= 0) y.row(t) += w(c, 0) * s.row(slot);
        }
      }
    });
  }
  return Variable::result(std::move(y), {slots, weights}, [=](const Matrix&, const Matrix& dy) {
    const ConstMatrixView s = slots.value();
    const ConstMatrixView w = weights.value();
    Matrix ds(s.rows(), s.cols());
    Matrix dw = Matrix::Zero(w.rows(), 1);
    parallel::for_blocks(plan->num_slots(), kTokenBlock, [&](Index begin, Index end) {
      for (Index slot = begin; slot < end; ++slot) {
        const Index t = plan->token_of_slot[at(slot)];
        const Index c = plan->choice_of_slot[at(slot)];
        ds.row(slot) = w(c, 0) * dy.row(t);
        dw(c, 0) = dy.row(t).dot(s.row(slot));
      }
    });
    if (slots.requires_grad()) slots.add_grad(std::move(ds));
    if (weights.requires_grad()) weights.add_grad(std::move(dw));
  });
}

}  // namespace moelab::moe

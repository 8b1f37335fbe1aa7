#include "moe/dispatch.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/prefetch.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace moelab::moe {

namespace {

constexpr Index kRowsAhead = 4;    // rows that are read later but asked for now
constexpr Index kTokenBlock = 64;  // tokens of a task where rows are added or multiplied

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// The row of a choice that is added later.
void prefetch_slot(const RoutingPlan& plan, Index choice, In slots) {
  if (choice >= plan.num_choices()) return;
  const Index slot = plan.slot_of_choice[at(choice)];
  if (slot >= 0) prefetch(slots.row(slot).data(), static_cast<std::size_t>(slots.cols()) * sizeof(Scalar));
}

// The weighted sum of each token's slots: (S, d) -> (N, d). w: (A, 1).
Matrix combine_rows(const RoutingPlan& plan, In slots, In w) {
  Matrix y = Matrix::Zero(plan.num_tokens, slots.cols());
  parallel::for_blocks(y.rows(), kTokenBlock, [&](Index begin, Index end) {
    for (Index t = begin; t < end; ++t) {
      for (Index c = plan.choice_offsets[at(t)]; c < plan.choice_offsets[at(t + 1)]; ++c) {
        const Index slot = plan.slot_of_choice[at(c)];
        prefetch_slot(plan, c + kRowsAhead, slots);
        if (slot >= 0) y.row(t) += w(c, 0) * slots.row(slot);
      }
    }
  });
  return y;
}

// The gradients of the slots from `first` on, and of their weights. slots, dslots: (n, d); dw: (A, 1).
void combine_backward(const RoutingPlan& plan, Index first, In slots, In w, In dy, Out dslots, Out dw) {
  const std::size_t row_bytes = static_cast<std::size_t>(dy.cols()) * sizeof(Scalar);
  for (Index r = 0; r < slots.rows(); ++r) {
    const Index t = plan.token_of_slot[at(first + r)];
    const Index c = plan.choice_of_slot[at(first + r)];
    if (r + kRowsAhead < slots.rows()) {
      prefetch(dy.row(plan.token_of_slot[at(first + r + kRowsAhead)]).data(), row_bytes);
      prefetch(slots.row(r + kRowsAhead).data(), row_bytes);
    }
    dw(c, 0) = dy.row(t).dot(slots.row(r));
    dslots.row(r) = w(c, 0) * dy.row(t);
  }
}

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

  // dy: (S, d_model), of the outputs.
  void backward(const Matrix& dy) {
    Matrix dx(num_slots(), x_.cols());
    backward_blocks(dx, [&](const Block& block) { return dy.middleRows(block.first_slot, block.rows); });
    if (x_.requires_grad()) x_.add_grad(plan_ ? sum_slots(dx) : std::move(dx));
  }

  // dy: (N, d_model), of the combined outputs. `slots`, what forward() gave, become the gradients of the
  // experts' inputs: a block of them has been read when it is written over.
  void backward_combined(Matrix& slots, const Variable& weights, const Matrix& dy) {
    const ConstMatrixView w = weights.value();
    Matrix dw = Matrix::Zero(w.rows(), 1);
    backward_blocks(slots, [&](const Block& block) {
      Matrix dslots(block.rows, dy.cols());
      combine_backward(*plan_, block.first_slot, slots.middleRows(block.first_slot, block.rows), w, dy,
                       dslots, dw);
      return dslots;
    });
    if (weights.requires_grad()) weights.add_grad(std::move(dw));
    if (x_.requires_grad()) x_.add_grad(sum_slots(slots));
    slots.resize(0, 0);
  }

 private:
  struct Block {
    ExpertPass* pass;
    Index first_row;   // of the pass
    Index first_slot;  // of all
    Index rows;
  };

  // Everything but the gradient of x itself. dy_of(block): the gradient of a block's outputs.
  // dx: (S, d_model).
  template <class F>
  void backward_blocks(Matrix& dx, const F& dy_of) {
    run_pieces(&ExpertPass::num_preparations, &ExpertPass::prepare_backward);
    parallel::for_each(static_cast<Index>(blocks_.size()), [&](Index i) {
      const Block& block = blocks_[at(i)];
      block.pass->backward(block.first_row, dy_of(block), dx.middleRows(block.first_slot, block.rows));
    });
    run_pieces(&ExpertPass::num_gradient_pieces, &ExpertPass::add_parameter_gradients);
    passes_.clear();
  }

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
          prefetch_slot(*plan_, c + kRowsAhead, slots);
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

std::vector<Expert*> pointers(const Experts& experts) {
  std::vector<Expert*> all;
  for (const auto& expert : experts) all.push_back(expert.get());
  return all;
}

void check_plan(const Experts& experts, const Variable& x, const RoutingPlan& plan) {
  require(plan.num_tokens == x.rows(), "[dispatch] a plan for {} tokens, {} rows", plan.num_tokens, x.rows());
  require(plan.num_experts() == static_cast<Index>(experts.size()), "[dispatch] a plan for {} experts of {}",
          plan.num_experts(), experts.size());
}

void check_combine(const Variable& weights, const RoutingPlan& plan) {
  require(weights.rows() == plan.num_choices(), "[dispatch] {} weights for {} choices", weights.rows(),
          plan.num_choices());
}

}  // namespace

Variable run_experts(const Experts& experts, const Variable& x, std::shared_ptr<const RoutingPlan> plan,
                     const ForwardContext& context) {
  check_plan(experts, x, *plan);
  return run(pointers(experts), x, std::move(plan), context);
}

Variable run_expert(Expert& expert, const Variable& x, const ForwardContext& context) {
  return run({&expert}, x, nullptr, context);
}

Variable combine(const Variable& slots, const Variable& weights, std::shared_ptr<const RoutingPlan> plan) {
  check_combine(weights, *plan);
  require(slots.rows() == plan->num_slots(), "[dispatch] {} rows for {} slots", slots.rows(),
          plan->num_slots());
  Matrix y = combine_rows(*plan, slots.value(), weights.value());
  return Variable::result(std::move(y), {slots, weights}, [=](const Matrix&, const Matrix& dy) {
    const ConstMatrixView s = slots.value();
    Matrix ds(s.rows(), s.cols());
    Matrix dw = Matrix::Zero(weights.rows(), 1);
    parallel::for_blocks(s.rows(), kTokenBlock, [&](Index begin, Index end) {
      combine_backward(*plan, begin, s.middleRows(begin, end - begin), weights.value(), dy,
                       ds.middleRows(begin, end - begin), dw);
    });
    if (slots.requires_grad()) slots.add_grad(std::move(ds));
    if (weights.requires_grad()) weights.add_grad(std::move(dw));
  });
}

Variable run_and_combine(const Experts& experts, const Variable& x, const Variable& weights,
                         std::shared_ptr<const RoutingPlan> plan, const ForwardContext& context) {
  check_plan(experts, x, *plan);
  check_combine(weights, *plan);
  auto dispatch = std::make_shared<Dispatch>(pointers(experts), x, plan, context);
  auto slots = std::make_shared<Matrix>(dispatch->forward());
  Matrix y = combine_rows(*plan, *slots, weights.value());
  std::vector<Variable> inputs = dispatch->inputs();
  inputs.push_back(weights);
  return Variable::result(std::move(y), std::move(inputs),
                          [dispatch, slots, weights](const Matrix&, const Matrix& dy) {
                            dispatch->backward_combined(*slots, weights, dy);
                          });
}

}  // namespace moelab::moe

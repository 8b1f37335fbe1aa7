#include "moe/dispatch.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace moelab::moe {

namespace {

constexpr Index kBlockRows = 128;  // rows of a task
constexpr Index kTokenBlock = 64;  // tokens of a task where tokens are summed or rows multiplied

// One batch through the experts: what the forward pass does, and what it keeps for the backward pass.
class ExpertPass {
 public:
  ExpertPass(std::vector<Expert*> experts, Variable x, std::shared_ptr<const RoutingPlan> plan,
             const ForwardContext& context)
      : experts_(std::move(experts)), x_(std::move(x)), plan_(std::move(plan)), context_(context) {
    if (!plan_) {
      every_row_.resize(static_cast<std::size_t>(x_.rows()));
      std::iota(every_row_.begin(), every_row_.end(), Index{0});
    }
    for (std::size_t e = 0; e < experts_.size(); ++e) plan_tasks(e);
    saved_.resize(experts_.size());
    scratch_.resize(experts_.size());
    tapes_.resize(experts_.size());
  }

  // The experts' parameters get their gradients from their kernels and graphs; an empty leaf stands for them,
  // so that the backward pass takes place even where x needs no gradient.
  std::vector<Variable> inputs() const { return {x_, Variable(Matrix(), context_.record)}; }

  Matrix forward() {
    Matrix y(num_slots(), x_.cols());
    if (context_.record) {
      for (std::size_t e = 0; e < experts_.size(); ++e) {
        if (const ExpertKernel* kernel = experts_[e]->kernel())
          saved_[e].resize(rows_of(e), kernel->saved_cols());
      }
    }
    parallel::for_each(static_cast<Index>(tasks_.size()), [&](Index i) { forward_task(tasks_[at(i)], y); });
    return y;
  }

  void backward(const Matrix& dy) {
    Matrix dx(num_slots(), x_.cols());
    Matrix gathered;  // x, one row a slot
    if (plan_) gathered.resize(num_slots(), x_.cols());
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      if (const ExpertKernel* kernel = experts_[e]->kernel())
        scratch_[e].resize(rows_of(e), kernel->scratch_cols());
    }
    parallel::for_each(static_cast<Index>(tasks_.size()),
                       [&](Index i) { backward_task(tasks_[at(i)], dy, gathered, dx); });
    add_parameter_gradients(dy, gathered);
    if (x_.requires_grad()) x_.add_grad(plan_ ? sum_slots(dx) : std::move(dx));
  }

 private:
  // Rows first_row .. first_row + rows of what expert `expert` gets.
  struct Task {
    std::size_t expert;
    Index first_row, rows;
  };
  struct Tape {
    Variable x, y;
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Index num_slots() const { return plan_ ? plan_->num_slots() : x_.rows(); }
  Index first_slot(std::size_t e) const { return plan_ ? plan_->expert_offsets[e] : 0; }
  Index rows_of(std::size_t e) const { return plan_ ? plan_->rows_of(static_cast<Index>(e)) : x_.rows(); }

  ExpertRows rows(Index slot, Index count) const {
    const std::vector<Index>& tokens = plan_ ? plan_->token_of_slot : every_row_;
    return {context_, {tokens.data() + slot, at(count)}};
  }

  // A kernel takes blocks; a tape takes all rows at once, so that its parameters have one writer.
  void plan_tasks(std::size_t e) {
    const Index n = rows_of(e);
    const Index block = experts_[e]->kernel() ? kBlockRows : std::max<Index>(n, 1);
    for (Index r = 0; r < n; r += block) tasks_.push_back({e, r, std::min(block, n - r)});
  }

  void gather(Index slot, Out rows) const {
    const ConstMatrixView x = x_.value();
    for (Index r = 0; r < rows.rows(); ++r) rows.row(r) = x.row(plan_->token_of_slot[at(slot + r)]);
  }

  void forward_task(const Task& task, Matrix& y) {
    const Index slot = first_slot(task.expert) + task.first_row;
    Matrix block;
    if (plan_) {
      block.resize(task.rows, x_.cols());
      gather(slot, block);
    }
    Expert& expert = *experts_[task.expert];
    if (const ExpertKernel* kernel = expert.kernel()) {
      Matrix& saved = saved_[task.expert];
      Matrix none(task.rows, 0);
      const Eigen::Ref<const Matrix> x =
          plan_ ? Eigen::Ref<const Matrix>(block)
                : Eigen::Ref<const Matrix>(x_.value().middleRows(slot, task.rows));
      if (context_.record) {
        kernel->forward(x, y.middleRows(slot, task.rows), saved.middleRows(task.first_row, task.rows),
                        rows(slot, task.rows));
      } else {
        kernel->forward(x, y.middleRows(slot, task.rows), none, rows(slot, task.rows));
      }
      return;
    }
    if (!plan_) block = x_.value();
    Tape tape{Variable(std::move(block), context_.record), {}};
    tape.y = expert.forward(tape.x, rows(slot, task.rows));
    require(tape.y.rows() == task.rows && tape.y.cols() == x_.cols(),
            "[dispatch] expert {} turned ({}, {}) into ({}, {})", task.expert, task.rows, x_.cols(),
            tape.y.rows(), tape.y.cols());
    y.middleRows(slot, task.rows) = tape.y.value();
    if (context_.record) tapes_[task.expert] = std::move(tape);
  }

  void backward_task(const Task& task, const Matrix& dy, Matrix& gathered, Matrix& dx) {
    const Index slot = first_slot(task.expert) + task.first_row;
    if (const ExpertKernel* kernel = experts_[task.expert]->kernel()) {
      if (plan_) gather(slot, gathered.middleRows(slot, task.rows));
      kernel->backward_rows(dy.middleRows(slot, task.rows),
                            saved_[task.expert].middleRows(task.first_row, task.rows),
                            scratch_[task.expert].middleRows(task.first_row, task.rows),
                            dx.middleRows(slot, task.rows), rows(slot, task.rows));
      return;
    }
    const Tape tape = std::move(tapes_[task.expert]);
    moelab::backward(tape.y, dy.middleRows(slot, task.rows));
    dx.middleRows(slot, task.rows) = tape.x.grad();
  }

  void add_parameter_gradients(const Matrix& dy, const Matrix& gathered) const {
    struct Piece {
      std::size_t expert;
      Index piece;
    };
    std::vector<Piece> pieces;
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      const ExpertKernel* kernel = experts_[e]->kernel();
      if (!kernel || rows_of(e) == 0) continue;
      for (Index p = 0; p < kernel->num_gradient_pieces(); ++p) pieces.push_back({e, p});
    }
    parallel::for_each(static_cast<Index>(pieces.size()), [&](Index i) {
      const auto [e, piece] = pieces[at(i)];
      const Index slot = first_slot(e);
      const Index n = rows_of(e);
      const Eigen::Ref<const Matrix> x = plan_ ? Eigen::Ref<const Matrix>(gathered.middleRows(slot, n))
                                               : Eigen::Ref<const Matrix>(x_.value());
      experts_[e]->kernel()->add_parameter_gradients(piece, x, dy.middleRows(slot, n), saved_[e], scratch_[e],
                                                     rows(slot, n));
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

  std::vector<Expert*> experts_;
  Variable x_;
  std::shared_ptr<const RoutingPlan> plan_;  // null: one expert, which takes every row as it lies
  std::vector<Index> every_row_;
  ForwardContext context_;
  std::vector<Task> tasks_;
  std::vector<Matrix> saved_, scratch_;  // one an expert with a kernel
  std::vector<Tape> tapes_;              // one an expert without
};

Variable run(std::vector<Expert*> experts, const Variable& x, std::shared_ptr<const RoutingPlan> plan,
             const ForwardContext& context) {
  auto pass = std::make_shared<ExpertPass>(std::move(experts), x, std::move(plan), context);
  Matrix y = pass->forward();
  return Variable::result(std::move(y), pass->inputs(),
                          [pass](const Matrix&, const Matrix& dy) { pass->backward(dy); });
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
  return run(std::move(pointers), x, std::move(plan), context);
}

Variable run_expert(Expert& expert, const Variable& x, const ForwardContext& context) {
  return run({&expert}, x, nullptr, context);
}

Variable combine(const Variable& slots, const Variable& weights, std::shared_ptr<const RoutingPlan> plan) {
  require(weights.rows() == plan->num_choices(), "[dispatch] {} weights for {} choices", weights.rows(),
          plan->num_choices());
  require(slots.rows() == plan->num_slots(), "[dispatch] {} rows for {} slots", slots.rows(),
          plan->num_slots());
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
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

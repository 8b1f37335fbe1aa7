#include "moe/routers/balanced_assignment.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <limits>

namespace moelab::moe {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLeastGain = 1e-12;  // smaller differences are rounding

// Rows are placed one by one. A row may push another out of the expert that it takes, which pushes another
// one, and so on; the chain with the least loss is the shortest path in a graph of the experts. Each expert
// has n / E seats, and n % E of them have one more, the extra seat, which may be handed from expert to
// expert.
class Assignment {
 public:
  explicit Assignment(In scores)
      : scores_(scores.cast<double>()),
        num_experts_(scores.cols()),
        quota_(scores.rows() / scores.cols()),
        free_extras_(scores.rows() % scores.cols()),
        expert_of_(at(scores.rows()), -1),
        members_(at(scores.cols())),
        has_extra_(at(scores.cols()), false),
        moves_(at(scores.cols() * scores.cols())) {}

  std::vector<std::int32_t> solve() {
    for (Index row = 0; row < scores_.rows(); ++row) place(row);
    return expert_of_;
  }

 private:
  static constexpr Index kExtraSeat = -1;
  // The cheapest row to move from one expert to another.
  struct Move {
    double loss = kNever;
    Index row = 0;
  };
  struct Step {
    double loss = kNever;  // of the chain up to here
    Index from = -1;       // the expert before; -1: the new row comes here
    Index row = 0;         // what comes from there; kExtraSeat: nothing comes, the extra seat goes there
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Move& move(Index from, Index to) { return moves_[at(from * num_experts_ + to)]; }
  Index size(Index e) const { return static_cast<Index>(members_[at(e)].size()); }
  bool has_room(Index e) const {
    return size(e) < quota_ + (has_extra_[at(e)] ? 1 : 0) || (!has_extra_[at(e)] && free_extras_ > 0);
  }

  void place(Index row) {
    std::vector<Step> steps(at(num_experts_));
    for (Index e = 0; e < num_experts_; ++e) steps[at(e)] = {-scores_(row, e), -1, row};
    for (Index round = 0; round < num_experts_ && relax(steps); ++round) {
    }
    Index end = -1;
    for (Index e = 0; e < num_experts_; ++e) {
      if (has_room(e) && (end < 0 || steps[at(e)].loss < steps[at(end)].loss)) end = e;
    }
    carry_out(steps, end, row);
  }

  // One round of Bellman-Ford; true if a chain got cheaper.
  bool relax(std::vector<Step>& steps) {
    bool changed = false;
    const auto offer = [&](Index from, Index to, double loss, Index row) {
      if (loss < steps[at(to)].loss - kLeastGain) {
        steps[at(to)] = {loss, from, row};
        changed = true;
      }
    };
    for (Index from = 0; from < num_experts_; ++from) {
      const double loss = steps[at(from)].loss;
      for (Index to = 0; to < num_experts_; ++to) {
        if (to == from) continue;
        offer(from, to, loss + move(from, to).loss, move(from, to).row);
        if (!has_extra_[at(from)] && has_extra_[at(to)]) offer(from, to, loss, kExtraSeat);
      }
    }
    return changed;
  }

  void carry_out(const std::vector<Step>& steps, Index end, Index new_row) {
    if (!has_extra_[at(end)] && size(end) == quota_) {
      has_extra_[at(end)] = true;
      --free_extras_;
    }
    std::vector<Index> changed;
    Index e = end;
    for (Index length = 0; steps[at(e)].from >= 0; ++length) {
      require(length <= num_experts_, "[balanced_assignment] a chain that does not end");
      const Step& step = steps[at(e)];
      if (step.row == kExtraSeat) {
        has_extra_[at(step.from)] = true;
        has_extra_[at(e)] = false;
      } else {
        auto& old = members_[at(step.from)];
        old.erase(std::find(old.begin(), old.end(), step.row));
        add(step.row, e);
        changed.push_back(step.from);
      }
      e = step.from;
    }
    add(new_row, e);
    for (const Index expert : changed) find_moves(expert);
  }

  void add(Index row, Index e) {
    members_[at(e)].push_back(row);
    expert_of_[at(row)] = static_cast<std::int32_t>(e);
    offer_moves(row, e);
  }

  void offer_moves(Index row, Index e) {
    for (Index to = 0; to < num_experts_; ++to) {
      const double loss = scores_(row, e) - scores_(row, to);
      if (loss < move(e, to).loss) move(e, to) = {loss, row};
    }
  }

  void find_moves(Index e) {
    for (Index to = 0; to < num_experts_; ++to) move(e, to) = {};
    for (const Index row : members_[at(e)]) offer_moves(row, e);
  }

  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> scores_;
  Index num_experts_, quota_, free_extras_;
  std::vector<std::int32_t> expert_of_;
  std::vector<std::vector<Index>> members_;
  std::vector<bool> has_extra_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<std::int32_t> balanced_assignment(In scores) { return Assignment(scores).solve(); }

}  // namespace moelab::moe

#include "moe/expert.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace moelab::moe {

namespace {

// All rows at once, recorded on a tape of their own.
class TapePass final : public ExpertPass {
 public:
  TapePass(Expert& expert, const ExpertRows& rows) : expert_(expert), rows_(rows) {}

  Index block_rows() const override { return std::max<Index>(rows_.count(), 1); }

  void forward(Index /*first*/, Out y) override {
    Matrix gathered(rows_.count(), rows_.x.cols());
    for (Index r = 0; r < gathered.rows(); ++r)
      gathered.row(r) = rows_.x.row(rows_.tokens[static_cast<std::size_t>(r)]);
    x_ = Variable(std::move(gathered), rows_.context.record);
    y_ = expert_.forward(x_, rows_);
    require(y_.rows() == y.rows() && y_.cols() == y.cols(), "[expert] rows ({}, {}) became ({}, {})",
            y.rows(), y.cols(), y_.rows(), y_.cols());
    y = y_.value();
  }

  void backward(Index /*first*/, In dy, Out dx) override {
    moelab::backward(y_, dy);
    dx = x_.grad();
    x_ = y_ = Variable();
  }

 private:
  Expert& expert_;
  ExpertRows rows_;
  Variable x_, y_;
};

}  // namespace

Variable Expert::forward(const Variable& /*x*/, const ExpertRows& /*rows*/) {
  fail("[expert] this kind of expert has neither forward() nor begin()");
}

std::unique_ptr<ExpertPass> Expert::begin(const ExpertRows& rows) {
  return std::make_unique<TapePass>(*this, rows);
}

}  // namespace moelab::moe

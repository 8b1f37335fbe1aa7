#include "core/ops/loss.hpp"

#include "core/error.hpp"
#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <cmath>
#include <limits>

namespace moelab::ops {

namespace {

constexpr Index kBlock = 64;  // rows of a task
constexpr double kNotCounted = std::numeric_limits<double>::quiet_NaN();

// Mean of the rows for which counts(i) holds, added in order. A NaN among them makes the mean NaN.
template <class Counts>
Scalar mean_of(const std::vector<double>& rows, Index num_counted, Counts counts) {
  double sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) sum += counts(i) ? rows[i] : 0.0;
  return static_cast<Scalar>(num_counted == 0 ? 0.0 : sum / static_cast<double>(num_counted));
}

}  // namespace

TaskLoss cross_entropy(const Variable& logits, std::span<const std::int32_t> targets,
                       std::int32_t ignore_index) {
  const Index rows = logits.rows(), vocab = logits.cols();
  require(static_cast<Index>(targets.size()) == rows, "[cross_entropy] {} targets for {} rows",
          targets.size(), rows);
  TaskLoss loss;
  for (const std::int32_t target : targets) {
    if (target == ignore_index) continue;
    require(target >= 0 && target < vocab, "[cross_entropy] target {} is not in [0, {})", target, vocab);
    ++loss.num_counted;
  }

  loss.rows.assign(targets.size(), kNotCounted);
  Matrix log_sum_exp(rows, 1);
  parallel::for_blocks(rows, kBlock, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto n = static_cast<std::size_t>(i);
      if (targets[n] == ignore_index) continue;
      const Scalar* row = logits.value().data() + i * vocab;
      const Scalar largest = math::largest_entry(row, vocab);
      const Scalar total = math::sum_entries(vocab, [=](Index j) { return math::exp(row[j] - largest); });
      log_sum_exp(i, 0) = largest + std::log(total);
      loss.rows[n] = double{largest} - double{row[targets[n]]} + std::log(double{total});
    }
  });
  const Scalar mean =
      mean_of(loss.rows, loss.num_counted, [&](std::size_t i) { return targets[i] != ignore_index; });

  // dlogits = (softmax - onehot(target)) dmean / num_counted
  loss.mean = Variable::result(
      Matrix::Constant(1, 1, mean), {logits},
      [logits, log_sum_exp = std::move(log_sum_exp), ignore_index, num_counted = loss.num_counted,
       saved = std::vector<std::int32_t>(targets.begin(), targets.end())](const Matrix&,
                                                                          const Matrix& dmean) {
        const Index num_rows = logits.rows(), width = logits.cols();
        const Scalar factor = dmean(0, 0) / static_cast<Scalar>(std::max<Index>(num_counted, 1));
        Matrix dlogits(num_rows, width);
        parallel::for_blocks(num_rows, kBlock, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) {
            const std::int32_t target = saved[static_cast<std::size_t>(i)];
            if (target == ignore_index) {
              dlogits.row(i).setZero();
              continue;
            }
            const Scalar* row = logits.value().data() + i * width;
            Scalar* out = dlogits.data() + i * width;
            const Scalar shift = log_sum_exp(i, 0);
            math::for_entries(width, [=](Index j) { out[j] = factor * math::exp(row[j] - shift); });
            out[target] -= factor;
          }
        });
        logits.add_grad(std::move(dlogits));
      });
  return loss;
}

TaskLoss squared_error(const Variable& prediction, In target, std::span<const std::uint8_t> is_real) {
  const Index rows = prediction.rows(), cols = prediction.cols();
  require(target.rows() == rows && target.cols() == cols,
          "[squared_error] prediction ({}, {}), target ({}, {})", rows, cols, target.rows(), target.cols());
  require(is_real.empty() || static_cast<Index>(is_real.size()) == rows,
          "[squared_error] {} marks for {} rows", is_real.size(), rows);
  const auto counts = [is_real](std::size_t i) { return is_real.empty() || is_real[i] != 0; };
  TaskLoss loss;
  loss.rows.assign(static_cast<std::size_t>(rows), kNotCounted);
  Matrix difference = prediction.value() - target;
  for (Index i = 0; i < rows; ++i) {
    const auto n = static_cast<std::size_t>(i);
    if (!counts(n)) {
      difference.row(i).setZero();
      continue;
    }
    ++loss.num_counted;
    double sum = 0;
    for (Index j = 0; j < cols; ++j) sum += double{difference(i, j)} * double{difference(i, j)};
    loss.rows[n] = sum / static_cast<double>(cols);
  }
  const double size = static_cast<double>(std::max<Index>(loss.num_counted, 1)) * static_cast<double>(cols);
  loss.mean = Variable::result(
      Matrix::Constant(1, 1, mean_of(loss.rows, loss.num_counted, counts)), {prediction},
      [prediction, difference = std::move(difference), size](const Matrix&, const Matrix& dmean) {
        prediction.add_grad(static_cast<Scalar>(2 * double{dmean(0, 0)} / size) * difference);
      });
  return loss;
}

}  // namespace moelab::ops

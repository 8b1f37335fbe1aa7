#include "core/ops/softmax.hpp"

#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <cmath>

namespace moelab::ops {

namespace {

constexpr Index kRowBlock = 64;  // rows of a task

struct RowSoftmax {
  Matrix probabilities;  // (N, E)
  Matrix log_sum_exp;    // (N, 1)
};

RowSoftmax softmax_of(ConstMatrixView x) {
  RowSoftmax y{Matrix(x.rows(), x.cols()), Matrix(x.rows(), 1)};
  const Index width = x.cols();
  parallel::for_blocks(x.rows(), kRowBlock, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Scalar* in = x.data() + i * width;
      Scalar* out = y.probabilities.data() + i * width;
      const Scalar largest = math::largest_entry(in, width);
      math::for_entries(width, [=](Index j) { out[j] = math::exp(in[j] - largest); });
      const Scalar total = math::sum_entries(width, [=](Index j) { return out[j]; });
      const Scalar inverse = 1 / total;
      math::for_entries(width, [=](Index j) { out[j] *= inverse; });
      y.log_sum_exp(i, 0) = largest + std::log(total);
    }
  });
  return y;
}

}  // namespace

Variable row_softmax(const Variable& x) {
  return Variable::result(softmax_of(x.value()).probabilities, {x}, [x](const Matrix& y, const Matrix& dy) {
    Matrix dx(y.rows(), y.cols());
    const Index width = y.cols();
    parallel::for_blocks(y.rows(), kRowBlock, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Scalar* p = y.data() + i * width;
        const Scalar* dp = dy.data() + i * width;
        Scalar* out = dx.data() + i * width;
        const Scalar inner = math::sum_entries(width, [=](Index j) { return p[j] * dp[j]; });
        math::for_entries(width, [=](Index j) { out[j] = p[j] * (dp[j] - inner); });
      }
    });
    x.add_grad(std::move(dx));
  });
}

Variable row_log_sum_exp(const Variable& x) {
  RowSoftmax softmax = softmax_of(x.value());
  return Variable::result(std::move(softmax.log_sum_exp), {x},
                          [x, p = std::move(softmax.probabilities)](const Matrix&, const Matrix& dy) {
                            x.add_grad((p.array().colwise() * dy.col(0).array()).matrix());
                          });
}

}  // namespace moelab::ops

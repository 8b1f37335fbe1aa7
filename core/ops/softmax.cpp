#include "core/ops/softmax.hpp"

#include "core/ops/math.hpp"

#include <algorithm>
#include <cmath>

namespace moelab::ops {

namespace {

struct RowSoftmax {
  Matrix probabilities;  // (N, E)
  Matrix log_sum_exp;    // (N, 1)
};

RowSoftmax softmax_of(ConstMatrixView x) {
  RowSoftmax y{Matrix(x.rows(), x.cols()), Matrix(x.rows(), 1)};
  for (Index i = 0; i < x.rows(); ++i) {
    const Scalar* in = x.data() + i * x.cols();
    Scalar* out = y.probabilities.data() + i * x.cols();
    const Scalar largest = *std::max_element(in, in + x.cols());
    for (Index j = 0; j < x.cols(); ++j) out[j] = math::exp(in[j] - largest);
    Scalar total = 0;
    for (Index j = 0; j < x.cols(); ++j) total += out[j];
    const Scalar inverse = 1 / total;
    for (Index j = 0; j < x.cols(); ++j) out[j] *= inverse;
    y.log_sum_exp(i, 0) = largest + std::log(total);
  }
  return y;
}

}  // namespace

Variable row_softmax(const Variable& x) {
  return Variable::result(softmax_of(x.value()).probabilities, {x}, [x](const Matrix& y, const Matrix& dy) {
    Matrix dx = y.cwiseProduct(dy);
    for (Index i = 0; i < dx.rows(); ++i) {
      Scalar inner = 0;  // sum_j y_j dy_j
      for (Index j = 0; j < dx.cols(); ++j) inner += dx(i, j);
      dx.row(i) -= inner * y.row(i);
    }
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

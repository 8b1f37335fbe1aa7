#include "core/ops/normalise.hpp"

#include <cmath>

namespace moelab::ops {

namespace {

Scalar dot(const Scalar* a, const Scalar* b, Index n) {
  Scalar total = 0;
  for (Index j = 0; j < n; ++j) total += a[j] * b[j];
  return total;
}

}  // namespace

Variable row_normalise(const Variable& x) {
  const Index d = x.cols();
  Matrix value = x.value();
  Matrix inverse(x.rows(), 1);  // 1 / |x|, or 0 for a row of zeros
  for (Index i = 0; i < value.rows(); ++i) {
    const Scalar norm = std::sqrt(dot(value.data() + i * d, value.data() + i * d, d));
    inverse(i, 0) = norm > 0 ? 1 / norm : Scalar{0};
    value.row(i) *= inverse(i, 0);
  }
  return Variable::result(std::move(value), {x},
                          [x, d, inverse = std::move(inverse)](const Matrix& y, const Matrix& dy) {
                            Matrix dx(y.rows(), d);  // (dy - y (y . dy)) / |x|
                            for (Index i = 0; i < y.rows(); ++i) {
                              const Scalar along = dot(y.data() + i * d, dy.data() + i * d, d);
                              dx.row(i) = inverse(i, 0) * (dy.row(i) - along * y.row(i));
                            }
                            x.add_grad(std::move(dx));
                          });
}

Variable row_normalise_sum(const Variable& x, double epsilon) {
  const Index d = x.cols();
  Matrix value = x.value();
  Matrix inverse(x.rows(), 1);  // 1 / (sum + epsilon)
  for (Index i = 0; i < value.rows(); ++i) {
    Scalar total = 0;
    for (Index j = 0; j < d; ++j) total += value(i, j);
    inverse(i, 0) = 1 / (total + static_cast<Scalar>(epsilon));
    value.row(i) *= inverse(i, 0);
  }
  return Variable::result(std::move(value), {x},
                          [x, d, inverse = std::move(inverse)](const Matrix& y, const Matrix& dy) {
                            Matrix dx(y.rows(), d);  // (dy - y . dy) / (sum + epsilon)
                            for (Index i = 0; i < y.rows(); ++i) {
                              const Scalar along = dot(y.data() + i * d, dy.data() + i * d, d);
                              dx.row(i) = (inverse(i, 0) * (dy.row(i).array() - along)).matrix();
                            }
                            x.add_grad(std::move(dx));
                          });
}

}  // namespace moelab::ops

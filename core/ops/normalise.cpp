#include "core/ops/normalise.hpp"

#include <cmath>
#include <limits>

namespace moelab::ops {

namespace {

Scalar dot(const Scalar* a, const Scalar* b, Index n) {
  Scalar total = 0;
  for (Index j = 0; j < n; ++j) total += a[j] * b[j];
  return total;
}

// 1 / |x|, or 0 for a row of zeros. Where the sum of squares overflows it is taken in double, and where even
// the result is too small for Scalar it is NaN, so that the overflow is found; 0 would hide it.
Scalar inverse_norm(const Scalar* x, Index n) {
  const Scalar square = dot(x, x, n);
  if (std::isfinite(square)) return square > 0 ? 1 / std::sqrt(square) : Scalar{0};
  double sum = 0;
  for (Index j = 0; j < n; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
  const double inverse = 1 / std::sqrt(sum);
  const bool fits = inverse >= static_cast<double>(std::numeric_limits<Scalar>::min());
  return fits ? static_cast<Scalar>(inverse) : std::numeric_limits<Scalar>::quiet_NaN();
}

}  // namespace

Variable row_normalise(const Variable& x) {
  const Index d = x.cols();
  Matrix value = x.value();
  Matrix inverse(x.rows(), 1);  // 1 / |x|, or 0 for a row of zeros
  for (Index i = 0; i < value.rows(); ++i) {
    inverse(i, 0) = inverse_norm(value.data() + i * d, d);
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

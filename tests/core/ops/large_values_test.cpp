// Values whose squares overflow float32: the result is right, or what cannot be held is found. A quiet zero
// in the place of an infinity would be neither.
#include "core/ops/norm.hpp"
#include "core/ops/normalise.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace moelab;

namespace {

const Variable kNone;

// Numbers of both signs around `size`, none of which is 0.
Matrix row_of(Index d, double size) {
  Matrix x(1, d);
  for (Index j = 0; j < d; ++j) {
    x(0, j) = static_cast<Scalar>(size * (0.5 + 0.5 * std::sin(static_cast<double>(3 * j))));
    if (j % 3 == 1) x(0, j) = -x(0, j);
  }
  return x;
}

double deviation(const Matrix& x, double mean) {
  double sum = 0;
  for (Index j = 0; j < x.cols(); ++j) sum += std::pow(static_cast<double>(x(0, j)) - mean, 2);
  return std::sqrt(sum / static_cast<double>(x.cols()));
}

double mean_of(const Matrix& x) {
  double sum = 0;
  for (Index j = 0; j < x.cols(); ++j) sum += static_cast<double>(x(0, j));
  return sum / static_cast<double>(x.cols());
}

// The largest difference from (x - mean) / divisor.
double error_of(const ConstMatrixView& y, const Matrix& x, double mean, double divisor) {
  double worst = 0;
  for (Index j = 0; j < x.cols(); ++j) {
    const double right = (static_cast<double>(x(0, j)) - mean) / divisor;
    worst = std::max(worst, std::abs(static_cast<double>(y(0, j)) - right));
  }
  return worst;
}

}  // namespace

TEST_CASE("rows whose squares overflow are normalised right", "[ops]") {
  // A square that overflows, and squares whose sum alone does.
  for (const double size : {1e17, 2e18, 2e19, 1e30, 5e37}) {
    for (const Index d : {3, 40, 1000}) {
      CAPTURE(size, d);
      const Matrix x = row_of(d, size);
      const double mean = mean_of(x);
      CHECK(error_of(ops::rms_norm(Variable(x), kNone, 1e-5).value(), x, 0, deviation(x, 0)) < 1e-5);
      for (const bool outside : {false, true}) {
        const Variable y = ops::layer_norm(Variable(x), kNone, kNone, 1e-5, outside);
        CHECK(error_of(y.value(), x, mean, deviation(x, mean)) < 1e-5);
      }
      const double length = deviation(x, 0) * std::sqrt(static_cast<double>(d));
      if (length < 8e37) CHECK(error_of(ops::row_normalise(Variable(x)).value(), x, 0, length) < 1e-5);
    }
  }
}

TEST_CASE("large rows have the gradient of rows of ordinary size, divided by their size", "[ops]") {
  const Matrix x = row_of(8, 1);
  const double factor = 0x1p90;
  const Matrix dy = row_of(8, 0.3).rowwise().reverse();
  const auto gradient = [&](const Matrix& at, const auto& op) {
    const Variable v(at, true);
    backward(op(v), dy);
    return Matrix(v.grad());
  };
  const auto check = [&](const auto& op) {
    const Matrix ordinary = gradient(x, op);
    const Matrix large = gradient(x * static_cast<Scalar>(factor), op) * static_cast<Scalar>(factor);
    CHECK((ordinary - large).cwiseAbs().maxCoeff() < 1e-5F);
    CHECK(ordinary.cwiseAbs().maxCoeff() > 0.01F);
  };
  check([](const Variable& v) { return ops::rms_norm(v, kNone, 1e-12); });
  check([](const Variable& v) { return ops::layer_norm(v, kNone, kNone, 1e-12); });
  check([](const Variable& v) { return ops::layer_norm(v, kNone, kNone, 1e-12, true); });
  check([](const Variable& v) { return ops::row_normalise(v); });
}

TEST_CASE("what even double cannot bring back into float32 is not finite, and never 0", "[ops]") {
  const auto infinity = std::numeric_limits<Scalar>::infinity();
  Matrix with_infinity = row_of(40, 1);
  with_infinity(0, 7) = infinity;
  const Matrix largest = Matrix::Constant(1, 40, std::numeric_limits<Scalar>::max());  // 1 / it is denormal
  for (const Matrix& x : {with_infinity, largest}) {
    CHECK(ops::rms_norm(Variable(x), kNone, 1e-5).value().array().isNaN().all());
    CHECK(ops::row_normalise(Variable(x)).value().array().isNaN().all());
  }
  CHECK_FALSE(ops::layer_norm(Variable(with_infinity), kNone, kNone, 1e-5).value().allFinite());
}

#include "core/ops/norm.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

namespace {

const Variable kNone;

// The definitions, written out for one row.
Matrix layer_norm_by_hand(const Matrix& x, double epsilon, bool outside) {
  Matrix y = x;
  for (Index i = 0; i < x.rows(); ++i) {
    const double mean = x.row(i).mean();
    const double variance = (x.row(i).array() - mean).square().mean();
    y.row(i) =
        (x.row(i).array() - mean) / (outside ? std::sqrt(variance) + epsilon : std::sqrt(variance + epsilon));
  }
  return y;
}

double distance(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("normalisation computes its definition", "[ops]") {
  // More rows than a block of work, and a width that is no multiple of a vector.
  const Matrix x = random_matrix(150, 37, 1), g = random_matrix(1, 37, 2), b = random_matrix(1, 37, 3);
  for (const bool outside : {false, true}) {
    const Matrix y = layer_norm_by_hand(x, 0.1, outside);
    CHECK(distance(ops::layer_norm(Variable(x), kNone, kNone, 0.1, outside).value(), y) < 1e-13);
    const Matrix affine = (y.array().rowwise() * g.row(0).array()).rowwise() + b.row(0).array();
    CHECK(distance(ops::layer_norm(Variable(x), Variable(g), Variable(b), 0.1, outside).value(), affine) <
          1e-13);
  }
  Matrix rms = x;
  for (Index i = 0; i < x.rows(); ++i) rms.row(i) /= std::sqrt(x.row(i).array().square().mean() + 0.1);
  rms.array().rowwise() *= g.row(0).array();
  CHECK(distance(ops::rms_norm(Variable(x), Variable(g), 0.1).value(), rms) < 1e-13);
}

TEST_CASE("normalisation has the right gradients", "[ops][gradient]") {
  const Matrix x = random_matrix(70, 5, 1), g = random_matrix(1, 5, 2), b = random_matrix(1, 5, 3);
  for (const bool outside : {false, true}) {
    for (const double epsilon : {1e-5, 0.3}) {
      const auto affine = [=](const std::vector<Variable>& v) {
        return ops::layer_norm(v[0], v[1], v[2], epsilon, outside);
      };
      const auto plain = [=](const std::vector<Variable>& v) {
        return ops::layer_norm(v[0], kNone, kNone, epsilon, outside);
      };
      CHECK(gradient_mismatch(affine, {x, g, b}) == "");
      CHECK(gradient_mismatch(plain, {x}) == "");
    }
  }
  const auto rms = [](const std::vector<Variable>& v) { return ops::rms_norm(v[0], v[1], 0.01); };
  CHECK(gradient_mismatch(rms, {x, g}) == "");
}

TEST_CASE("a constant row is normalised to zero without a gradient that is not finite", "[ops]") {
  for (const bool outside : {false, true}) {
    const Variable x(Matrix::Constant(1, 4, 3.0), true);
    const Variable y = ops::layer_norm(x, kNone, kNone, 1e-5, outside);
    CHECK(y.value() == Matrix::Zero(1, 4));
    backward(y, random_matrix(1, 4, 1));
    CHECK(x.grad().allFinite());
  }
}

TEST_CASE("a gain of another width is an error", "[ops]") {
  CHECK_THROWS_WITH(ops::rms_norm(Variable(Matrix::Zero(2, 3)), Variable(Matrix::Zero(1, 4)), 1e-5),
                    Contains("(1, 4) for rows of 3"));
}

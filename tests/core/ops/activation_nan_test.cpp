// Built in float32 and in float64: what a NaN does must not depend on how loops are vectorised.
#include "core/ops/activation.hpp"
#include "core/ops/elementwise.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <limits>

using namespace moelab;

namespace {

constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();

// Long enough for a vector and a rest; a NaN in each.
constexpr Index kLength = 67;
bool is_nan_place(Index i) { return i == 5 || i == 66; }

Matrix with_nan(double from) {
  Matrix x(1, kLength);
  for (Index i = 0; i < kLength; ++i)
    x(0, i) = is_nan_place(i) ? kNan : static_cast<Scalar>(from + 0.1 * static_cast<double>(i));
  return x;
}

void check_nan_places(const Matrix& y) {
  for (Index i = 0; i < kLength; ++i) CHECK(std::isnan(y(0, i)) == is_nan_place(i));
}

}  // namespace

TEST_CASE("every activation of NaN is NaN", "[ops]") {
  for (const std::string& name : ops::activation_names()) {
    INFO(name);
    const ops::Activation activation = ops::activation_from_name(name);
    if (ops::is_gated(activation)) {
      const Variable finite(Matrix::Ones(1, kLength));
      check_nan_places(ops::activate_gated(activation, Variable(with_nan(-3)), finite).value());
      check_nan_places(ops::activate_gated(activation, finite, Variable(with_nan(-3))).value());
    } else {
      check_nan_places(ops::activate(activation, Variable(with_nan(-3))).value());
    }
  }
}

TEST_CASE("elementwise maps keep NaN", "[ops]") {
  check_nan_places(ops::relu(Variable(with_nan(-3))).value());
  check_nan_places(ops::clamp(Variable(with_nan(-3)), -1, 1).value());
  check_nan_places(ops::softplus(Variable(with_nan(-3))).value());
  check_nan_places(ops::sigmoid(Variable(with_nan(-3))).value());
  check_nan_places(ops::normal_cdf(Variable(with_nan(-3))).value());
}

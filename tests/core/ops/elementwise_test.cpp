#include "core/ops/elementwise.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>
#include <functional>
#include <limits>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Variable scalar(double v) { return Variable(Matrix::Constant(1, 1, v)); }
}  // namespace

TEST_CASE("binary operations have the right gradients in every broadcast", "[ops][gradient]") {
  using Operation = Variable (*)(const Variable&, const Variable&);
  for (const Operation op : {ops::add, ops::subtract, ops::multiply, ops::divide}) {
    const auto f = [op](const std::vector<Variable>& x) { return op(x[0], x[1]); };
    for (const auto& [rows, cols] : {std::pair{3, 4}, {1, 4}, {3, 1}, {1, 1}}) {
      const Matrix a = random_matrix(3, 4, 1);
      const Matrix b = (random_matrix(rows, cols, 2).array().abs() + 0.5).matrix();
      CHECK(gradient_mismatch(f, {a, b}) == "");
      CHECK(gradient_mismatch(f, {(b.array() + 0.1).matrix(), (a.array().abs() + 0.5).matrix()}) == "");
    }
    // Both operands broadcast: a column against a row.
    CHECK(gradient_mismatch(
              f, {random_matrix(3, 1, 3), (random_matrix(1, 4, 4).array().abs() + 0.5).matrix()}) == "");
  }
}

TEST_CASE("nothing divided by next to nothing has gradients that are finite", "[ops][gradient]") {
  // The square of the divisor is 0. In float32 this is a sum of dropped weights plus 1e-20.
  const Variable nothing(Matrix::Zero(1, 1), true), tiny(Matrix::Constant(1, 1, 1e-200), true);
  backward(ops::divide(nothing, tiny));
  CHECK(tiny.grad()(0, 0) == 0);
  CHECK_THAT(nothing.grad()(0, 0), WithinRel(1e200, 1e-12));
}

TEST_CASE("binary operations compute entry by entry", "[ops]") {
  const Variable column(Matrix{{1.0}, {2.0}});
  const Variable row(Matrix{{10.0, 20.0, 40.0}});
  CHECK(ops::add(column, row).value() == Matrix{{11.0, 21.0, 41.0}, {12.0, 22.0, 42.0}});
  CHECK(ops::subtract(row, column).value() == Matrix{{9.0, 19.0, 39.0}, {8.0, 18.0, 38.0}});
  CHECK(ops::multiply(column, row).value() == Matrix{{10.0, 20.0, 40.0}, {20.0, 40.0, 80.0}});
  CHECK(ops::divide(row, column).value() == Matrix{{10.0, 20.0, 40.0}, {5.0, 10.0, 20.0}});
  CHECK_THROWS_WITH(ops::add(Variable(Matrix::Zero(2, 3)), Variable(Matrix::Zero(3, 3))),
                    Contains("[add] shapes (2, 3) and (3, 3)"));
}

TEST_CASE("unary operations agree with the standard library and have the right gradients",
          "[ops][gradient]") {
  struct Case {
    const char* name;
    std::function<Variable(const Variable&)> op;
    std::function<double(double)> expected;
    bool positive;
  };
  const Case cases[] = {
      {"scale", [](const Variable& x) { return ops::scale(x, -1.5); }, [](double v) { return -1.5 * v; },
       false},
      {"add_constant", [](const Variable& x) { return ops::add_constant(x, 3); },
       [](double v) { return v + 3; }, false},
      {"negate", ops::negate, [](double v) { return -v; }, false},
      {"exp", ops::exp, [](double v) { return std::exp(v); }, false},
      {"log", ops::log, [](double v) { return std::log(v); }, true},
      {"sqrt", ops::sqrt, [](double v) { return std::sqrt(v); }, true},
      {"square", ops::square, [](double v) { return v * v; }, false},
      {"tanh", ops::tanh, [](double v) { return std::tanh(v); }, false},
      {"sigmoid", ops::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }, false},
      {"softplus", ops::softplus, [](double v) { return std::log(1 + std::exp(v)); }, false},
      {"relu", ops::relu, [](double v) { return std::max(v, 0.0); }, false},
      {"clamp", [](const Variable& x) { return ops::clamp(x, -0.5, 0.7); },
       [](double v) { return std::min(std::max(v, -0.5), 0.7); }, false},
      {"normal_cdf", ops::normal_cdf, [](double v) { return (1 + std::erf(v / std::sqrt(2.0))) / 2; }, false},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    Matrix x = random_matrix(4, 5, 7);
    if (c.positive) x = (x.array().abs() + 0.3).matrix();
    const Matrix y = c.op(Variable(x)).value();
    for (Index i = 0; i < x.size(); ++i) CHECK_THAT(y.data()[i], WithinAbs(c.expected(x.data()[i]), 1e-14));
    CHECK(gradient_mismatch([&c](const std::vector<Variable>& v) { return c.op(v[0]); }, {x}) == "");
  }
}

TEST_CASE("softplus, sigmoid and the normal distribution keep their limits", "[ops]") {
  CHECK(ops::softplus(scalar(1000)).item() == 1000);
  CHECK(ops::softplus(scalar(-1000)).item() == 0);
  CHECK(ops::sigmoid(scalar(kInfinity)).item() == 1);
  CHECK(ops::sigmoid(scalar(-kInfinity)).item() == 0);
  CHECK(ops::normal_cdf(scalar(kInfinity)).item() == 1);
  // Phi(-10) = 7.619853024160527e-24 (Abramowitz and Stegun, table 26.2): no cancellation in the tail.
  CHECK_THAT(ops::normal_cdf(scalar(-10)).item(), WithinRel(7.619853024160527e-24, 1e-12));
}

TEST_CASE("a quotient has a gradient where the square of its divisor is too small for a number", "[ops]") {
  const Variable zero(Matrix::Constant(1, 1, 0), true), tiny(Matrix::Constant(1, 1, Scalar(1e-170)), true);
  backward(ops::divide(zero, tiny));
  CHECK(tiny.grad()(0, 0) == 0);
  CHECK(zero.grad()(0, 0) == Scalar(1) / Scalar(1e-170));
}

#include "core/ops/activation.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <algorithm>
#include <cmath>

using namespace moelab;
using ops::Activation;
using test::gradient_mismatch;
using test::random_matrix;

namespace {

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
double gelu(double v) { return v * std::erfc(-v / std::sqrt(2.0)) / 2; }
double gelu_tanh(double v) {
  return v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))) / 2;
}

// The formulas of the header, one entry at a time.
double expected(Activation activation, double gate, double up) {
  switch (activation) {
    case Activation::relu:
      return std::max(gate, 0.0);
    case Activation::gelu:
      return gelu(gate);
    case Activation::gelu_tanh:
      return gelu_tanh(gate);
    case Activation::silu:
      return gate * sigmoid(gate);
    case Activation::relu_squared:
      return gate > 0 ? gate * gate : 0;
    case Activation::swiglu:
      return gate * sigmoid(gate) * up;
    case Activation::geglu:
      return gelu(gate) * up;
    case Activation::geglu_tanh:
      return gelu_tanh(gate) * up;
    case Activation::reglu:
      return std::max(gate, 0.0) * up;
    case Activation::swiglu_clamped: {
      const double g = std::min(gate, 7.0), u = std::clamp(up, -7.0, 7.0);
      return g * sigmoid(1.702 * g) * (u + 1);
    }
  }
  return NAN;
}

}  // namespace

TEST_CASE("every activation computes its formula and has the right gradient", "[ops][gradient]") {
  for (const std::string& name : ops::activation_names()) {
    INFO(name);
    const Activation activation = ops::activation_from_name(name);
    // Wide enough to reach both sides of the clamps.
    const Matrix gate = random_matrix(5, 7, 1, 4.0), up = random_matrix(5, 7, 2, 6.0);
    Matrix y;
    if (ops::is_gated(activation)) {
      y = ops::activate_gated(activation, Variable(gate), Variable(up)).value();
      const auto f = [=](const std::vector<Variable>& x) {
        return ops::activate_gated(activation, x[0], x[1]);
      };
      CHECK(gradient_mismatch(f, {gate, up}) == "");
    } else {
      y = ops::activate(activation, Variable(gate)).value();
      const auto f = [=](const std::vector<Variable>& x) { return ops::activate(activation, x[0]); };
      CHECK(gradient_mismatch(f, {gate}) == "");
    }
    for (Index i = 0; i < y.size(); ++i) {
      CHECK_THAT(y.data()[i], WithinAbs(expected(activation, gate.data()[i], up.data()[i]), 1e-12));
    }
  }
}

TEST_CASE("kernels may write over their inputs; backward gives the value again", "[ops]") {
  const Matrix gate = random_matrix(1, 37, 1), up = random_matrix(1, 37, 2), dy = random_matrix(1, 37, 3);
  for (const std::string& name : ops::activation_names()) {
    INFO(name);
    const Activation activation = ops::activation_from_name(name);
    Matrix a(1, 37), b(1, 37), c = gate, d = up, e = dy, y(1, 37), first(1, 37), again(1, 37);
    if (ops::is_gated(activation)) {
      ops::activate_gated(activation, gate.data(), up.data(), y.data(), 37);
      ops::activate_gated_backward(activation, gate.data(), up.data(), dy.data(), a.data(), b.data(),
                                   first.data(), 37);
      ops::activate_gated_backward(activation, c.data(), d.data(), e.data(), c.data(), d.data(), again.data(),
                                   37);
      CHECK(d == b);
    } else {
      ops::activate(activation, gate.data(), y.data(), 37);
      ops::activate_backward(activation, gate.data(), dy.data(), a.data(), first.data(), 37);
      ops::activate_backward(activation, c.data(), e.data(), c.data(), again.data(), 37);
    }
    CHECK(again == first);
    CHECK(again.isApprox(y, 1e-6));
    CHECK(c == a);
  }
}

TEST_CASE("an unknown or unfitting activation is an error that helps", "[ops]") {
  CHECK_THROWS_WITH(ops::activation_from_name("swigloo"),
                    Contains("swigloo") && Contains("relu, gelu, gelu_tanh"));
  CHECK_THROWS_WITH(ops::activate(Activation::swiglu, Variable(Matrix::Zero(1, 1))),
                    Contains("swiglu has a gate"));
  CHECK_THROWS_WITH(
      ops::activate_gated(Activation::relu, Variable(Matrix::Zero(1, 1)), Variable(Matrix::Zero(1, 1))),
      Contains("relu has no gate"));
}

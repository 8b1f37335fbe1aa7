#include "core/ops/linear.hpp"

#include "core/error.hpp"
#include "core/module.hpp"
#include "core/random.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;

namespace {

struct LinearModule : Module {
  Parameter w{3, 5, Init::normal(1)};
  Parameter b{1, 3, Init::normal(1)};
  void visit(Visitor& v) override {
    v.parameter("w", w);
    v.parameter("b", b);
  }
};

Matrix random_matrix(Index rows, Index cols, std::string_view name) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(7, name), 1);
  return m;
}

Scalar max_difference(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("linear is x W^T + b, with its gradients", "[linear]") {
  LinearModule module;
  ParameterStore store(module, 1);
  const Variable x(random_matrix(4, 5, "x"), true);
  const Matrix probe = random_matrix(4, 3, "probe");  // dy
  const Matrix w = module.w.value();

  const bool with_bias = GENERATE(false, true);
  const bool as_parameter = GENERATE(false, true);
  const Variable weight = as_parameter ? Variable(module.w, true) : Variable(w, true);
  const Variable bias = with_bias ? Variable(module.b, true) : Variable();
  const Variable y = linear(x, weight, bias, gemm::Precision::float32);

  Matrix expected(4, 3);
  Matrix dx = Matrix::Zero(4, 5);
  Matrix dw = Matrix::Zero(3, 5);
  for (Index t = 0; t < 4; ++t) {
    for (Index o = 0; o < 3; ++o) {
      expected(t, o) = with_bias ? module.b.value()(0, o) : 0;
      for (Index i = 0; i < 5; ++i) {
        expected(t, o) += x.value()(t, i) * w(o, i);
        dx(t, i) += probe(t, o) * w(o, i);
        dw(o, i) += probe(t, o) * x.value()(t, i);
      }
    }
  }
  CHECK(max_difference(y.value(), expected) < 1e-12);
  backward(y, probe);
  CHECK(max_difference(x.grad(), dx) < 1e-12);
  CHECK(max_difference(weight.grad(), dw) < 1e-12);
  if (with_bias) CHECK(max_difference(bias.grad(), probe.colwise().sum()) < 1e-12);
}

TEST_CASE("linear sees a parameter that an optimizer changed", "[linear]") {
  LinearModule module;
  ParameterStore store(module, 1);
  const Variable x(random_matrix(4, 5, "x"));
  const Matrix before = linear(x, Variable(module.w, false), {}, gemm::Precision::float32).value();
  module.w.value() *= 2;
  module.w.mark_changed();
  const Matrix after = linear(x, Variable(module.w, false), {}, gemm::Precision::float32).value();
  CHECK(max_difference(after, 2 * before) == 0);
}

TEST_CASE("linear of no rows gives no rows and a gradient of zero", "[linear]") {
  LinearModule module;
  ParameterStore store(module, 1);
  const Variable x(Matrix(0, 5), true);
  const Variable y = linear(x, Variable(module.w, true), Variable(module.b, true), gemm::Precision::float32);
  CHECK(y.rows() == 0);
  CHECK(y.cols() == 3);
  backward(y, Matrix(0, 3));
  CHECK(module.w.grad().isZero(0));
}

TEST_CASE("linear refuses shapes that do not fit", "[linear]") {
  const Variable x(Matrix::Zero(2, 4));
  const Variable w(Matrix::Zero(3, 5));
  CHECK_THROWS_WITH(linear(x, w, {}, gemm::Precision::float32), "[linear] x (2, 4) does not fit w (3, 5)");
  const Variable bias(Matrix::Zero(1, 4));
  CHECK_THROWS_AS(linear(Variable(Matrix::Zero(2, 5)), w, bias, gemm::Precision::float32), Error);
}

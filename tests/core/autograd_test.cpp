#include "core/autograd.hpp"

#include "core/error.hpp"
#include "core/module.hpp"
#include "core/ops/linear.hpp"
#include "tests/support/catch.hpp"

#include <utility>

using namespace moelab;

namespace {

Variable product(const Variable& a, const Variable& b) {
  return Variable::result(a.value().cwiseProduct(b.value()), {a, b}, [a, b](const Matrix&, const Matrix& dy) {
    if (a.requires_grad()) a.add_grad(dy.cwiseProduct(b.value()));
    if (b.requires_grad()) b.add_grad(dy.cwiseProduct(a.value()));
  });
}

Matrix scalar(Scalar v) { return Matrix::Constant(1, 1, v); }

}  // namespace

TEST_CASE("a variable used several times collects every gradient", "[autograd]") {
  const Variable x(scalar(3), true);
  const Variable cube = product(product(x, x), x);
  backward(cube);
  CHECK(cube.item() == 27);
  CHECK(x.grad()(0, 0) == 27);  // d x^3 = 3 x^2
}

TEST_CASE("no closure is kept where no gradient is wanted", "[autograd]") {
  const Variable x(scalar(3));
  const Variable y = product(x, x);
  CHECK_FALSE(y.requires_grad());
  backward(y);
  CHECK(x.grad()(0, 0) == 0);
}

TEST_CASE("a graph is followed once, from all that shares it", "[autograd]") {
  const Variable x(scalar(3), true);
  const Variable shared = product(x, x);
  const Variable one = product(shared, Variable(scalar(2)));
  const Variable other = product(shared, Variable(scalar(5)));
  backward(one);
  CHECK(x.grad()(0, 0) == 12);
  CHECK_THROWS_WITH(backward(one), Contains("a second time"));
  CHECK_THROWS_WITH(backward(other), Contains("a second time"));
  CHECK(x.grad()(0, 0) == 12);
}

TEST_CASE("a detached value passes no gradient", "[autograd]") {
  const Variable x(scalar(3), true);
  backward(product(x, x.detach()));
  CHECK(x.grad()(0, 0) == 3);
}

TEST_CASE("a deep graph is followed and freed without recursion", "[autograd]") {
  const Variable x(scalar(1), true);
  Variable y = x;
  for (int i = 0; i < 100000; ++i) y = product(y, x);
  backward(y);
  CHECK(x.grad()(0, 0) == 100001);
}

TEST_CASE("a deep graph that nobody followed is freed without recursion", "[autograd]") {
  const Variable x(scalar(1), true);
  {
    Variable y = x;
    for (int i = 0; i < 1000000; ++i) y = product(y, x);
    CHECK(y.item() == 1);
  }
  {
    // Each node is an input of the next twice, and of the one after it.
    Variable before = x, y = x;
    for (int i = 0; i < 1000000; ++i) before = std::exchange(y, product(product(y, y), before));
    CHECK(y.item() == 1);
  }
  // An exception on the way, as a value that is not finite ends a forward pass.
  const auto interrupted = [&] {
    Variable y = x;
    for (int i = 0; i < 1000000; ++i) y = product(y, x);
    throw NonFiniteError("the loss is not finite");
  };
  CHECK_THROWS_AS(interrupted(), NonFiniteError);
  CHECK(x.grad()(0, 0) == 0);  // x itself lives on
}

TEST_CASE("a parameter's gradient accumulates in its own storage", "[autograd][module]") {
  struct One : Module {
    Parameter w{1, 1, Init::constant(2)};
    void visit(Visitor& v) override { v.parameter("w", w); }
  } module;
  CHECK_FALSE(module.w.allocated());
  CHECK(count_parameters(module) == 1);
  ParameterStore store(module, 0);
  for (int i = 0; i < 2; ++i) {
    const Variable w(module.w, true);
    backward(product(w, w));
  }
  CHECK(module.w.grad()(0, 0) == 8);
  CHECK(store.grads()(0, 0) == 8);
  const Variable constant(module.w, false);
  CHECK_FALSE(constant.requires_grad());
}

TEST_CASE("a parameter has one name, one place and one store", "[module]") {
  struct Two : Module {
    Two(bool again, std::string_view other) : again_(again), other_(other) {}
    void visit(Visitor& v) override {
      v.parameter("a", a_);
      v.parameter(other_, again_ ? a_ : b_);
    }
    bool again_;
    std::string_view other_;
    Parameter a_{1, 2, Init::constant(1)}, b_{1, 2, Init::constant(2)};
  };
  Two twice(true, "b"), one_name(false, "a"), good(false, "b");
  CHECK_THROWS_WITH(ParameterStore(twice, 0), Contains("b is declared twice"));
  CHECK_THROWS_WITH(ParameterStore(one_name, 0), Contains("two are named a"));
  ParameterStore store(good, 0);
  CHECK(store.values().sum() == 6);
  CHECK_THROWS_WITH(ParameterStore(good, 0), Contains("a is owned by another store"));
}

TEST_CASE("a cleared gradient reads as zero, and the first addition may set it", "[autograd][module]") {
  struct Two : Module {
    Parameter a{3, 5, Init::constant(2)}, b{2, 3, Init::constant(1)};
    void visit(Visitor& v) override {
      v.parameter("a", a);
      v.parameter("b", b);
    }
  } module;
  ParameterStore store(module, 0);
  const auto use_a = [&] {
    const Variable y = linear(Variable(Matrix::Ones(1, 5)), Variable(module.a, true), {}, {});
    backward(y, Matrix::Ones(1, 3));
  };
  module.a.grad().setConstant(7);
  module.b.grad().setConstant(7);
  store.zero_grads();
  use_a();
  CHECK(module.a.grad() == Matrix::Ones(3, 5));
  use_a();
  CHECK(module.a.grad() == Matrix::Constant(3, 5, 2));
  CHECK(store.grads().sum() == 30);  // b was not used: zero
  CHECK(module.b.grad().isZero(0));
  store.zero_grads();
  CHECK(module.a.grad().isZero(0));
  CHECK_FALSE(module.a.take_cleared_grad());
}

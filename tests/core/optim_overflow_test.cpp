// What overflows float32 in an update or in clipping is found out, never taken for zero.
#include "core/error.hpp"
#include "core/optim.hpp"
#include "core/parallel.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <limits>
#include <memory>

using namespace moelab;

namespace {

// Several pieces of an update, the last of them of few values.
struct Model : Module {
  Parameter a{3, 5, Init::constant(1)};
  Parameter b{200, 251, Init::constant(1)};
  Parameter c{1, 7, Init::constant(1)};
  void visit(Visitor& v) override {
    v.parameter("a", a);
    v.parameter("b", b);
    v.parameter("c", c);
  }
};

constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
constexpr Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();

std::unique_ptr<Optimizer> optimizer_of(const std::string& kind, ParameterStore& store) {
  if (kind == "adamw") return make_adamw(store, {});
  return make_sgd(store, {.momentum = kind == "momentum" ? 0.9 : 0});
}

}  // namespace

TEST_CASE("a step says whether all that it wrote is finite, wherever it stands", "[optim]") {
  const std::string kind = GENERATE("adamw", "sgd", "momentum");
  CAPTURE(kind);
  constexpr Scalar kLargest = std::numeric_limits<Scalar>::max();
  for (const Index at : {Index{0}, Index{31}, Index{16384}, Index{200 * 251 - 1}}) {
    for (const Scalar value : {kLargest, -kLargest, kInfinity, -kInfinity, kNaN}) {
      CAPTURE(at, value);
      Model model;
      ParameterStore store(model, 1);
      const auto optimizer = optimizer_of(kind, store);
      model.b.value().data()[at] = value;
      store.zero_grads();
      CHECK(optimizer->step(0.1) == std::isfinite(value));
    }
  }
  // A value that becomes infinite in the step itself.
  Model model;
  ParameterStore store(model, 1);
  store.zero_grads();
  model.c.grad().setConstant(3e38F);
  CHECK_FALSE(optimizer_of(kind, store)->step(10));
}

TEST_CASE("a second moment that overflows is told, though its weight stays", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  const auto optimizer = make_adamw(store, {});
  store.zero_grads();
  model.a.grad()(1, 2) = 1e21F;
  CHECK_FALSE(optimizer->step(0.1));
  CHECK(Matrix(model.a.value()).allFinite());
}

TEST_CASE("of several gradients that are not finite the one next to the loss is named", "[optim]") {
  Model model;
  ParameterStore store(model, 1);
  store.zero_grads();
  model.a.grad()(0, 0) = kNaN;
  model.b.grad()(199, 3) = kInfinity;
  CHECK_THROWS_WITH(grad_norm(store), "[optimizer] the gradient of b is not finite");
}

TEST_CASE("gradients are clipped at any norm that they can have", "[optim]") {
  parallel::prepare_thread();  // denormals are zero, as in training
  for (const double size : {1e-3, 1.0, 1e30, 8e37, 2e38, 3.4e38}) {
    for (const double limit : {1.0, 1e-10}) {
      CAPTURE(size, limit);
      Model model;
      ParameterStore store(model, 1);
      store.zero_grads();
      model.a.grad().setConstant(static_cast<Scalar>(size));
      model.b.grad()(100, 100) = static_cast<Scalar>(-size);
      const double norm = 4 * size;  // of 16 equal values
      CHECK_THAT(clip_grad_norm(store, limit), WithinRel(norm, 1e-6));
      const double right = size * std::min(1.0, limit / (norm + 1e-6));
      CHECK_THAT(static_cast<double>(model.a.grad()(2, 4)), WithinRel(right, 1e-5));
      CHECK_THAT(static_cast<double>(model.b.grad()(100, 100)), WithinRel(-right, 1e-5));
    }
  }
}

#include "tests/support/gradient_check.hpp"

#include "tests/support/catch.hpp"

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

namespace {

struct OneMatrix : Module {
  Parameter w{2, 3, Init::normal(1)};
  void visit(Visitor& v) override { v.parameter("w", w); }
};

// y = w * x, entry by entry, whose backward adds to the gradient of w, or overwrites it.
Variable scaled(Parameter& parameter, const Variable& x, bool overwrite) {
  const Variable w(parameter, true);
  return Variable::result(w.value().cwiseProduct(x.value()), {w, x},
                          [w, x, overwrite](const Matrix&, const Matrix& dy) {
                            if (overwrite) w.grad().setZero();
                            w.add_grad(dy.cwiseProduct(x.value()));
                            if (x.requires_grad()) x.add_grad(dy.cwiseProduct(w.value()));
                          });
}

Variable square_with_factor(const Variable& x, double factor) {
  return Variable::result(x.value().cwiseAbs2(), {x}, [x, factor](const Matrix&, const Matrix& dy) {
    x.add_grad(factor * dy.cwiseProduct(x.value()));
  });
}

}  // namespace

TEST_CASE("the gradient check accepts a right derivative and refuses one that is off by a millionth",
          "[gradient_check]") {
  const Matrix x = random_matrix(3, 2, 1);
  const auto square = [](double factor) {
    return [factor](const std::vector<Variable>& v) { return square_with_factor(v[0], factor); };
  };
  CHECK(gradient_mismatch(square(2.0), {x}) == "");
  CHECK_THAT(gradient_mismatch(square(2.000002), {x}), Contains("gradient of input 0"));
}

TEST_CASE("the gradient check refuses a backward that overwrites a parameter's gradient",
          "[gradient_check]") {
  OneMatrix module;
  ParameterStore store(module, 1);
  const auto f = [&](bool overwrite) {
    return [&module, overwrite](const std::vector<Variable>& v) { return scaled(module.w, v[0], overwrite); };
  };
  CHECK(gradient_mismatch(f(false), {random_matrix(2, 3, 1)}, module) == "");
  CHECK_THAT(gradient_mismatch(f(true), {random_matrix(2, 3, 1)}, module), Contains("gradient of w"));
}

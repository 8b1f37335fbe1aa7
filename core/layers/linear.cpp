#include "core/layers/linear.hpp"

#include "core/ops/linear.hpp"

#include <cmath>

namespace moelab {

double residual_std(Index num_layers) {
  return kInitialStd / std::sqrt(2.0 * static_cast<double>(num_layers));
}

Linear::Linear(Index in, Index out, bool bias, double std) : weight_(out, in, Init::normal(std)) {
  if (bias) bias_.emplace(1, out, Init::constant(0));
}

Variable Linear::forward(const Variable& x, const ForwardContext& context) {
  const Variable bias = bias_ ? Variable(*bias_, context.record) : Variable();
  return linear(x, Variable(weight_, context.record), bias, context.precision);
}

void Linear::visit(Visitor& visitor, std::string_view weight, std::string_view bias) {
  visitor.parameter(weight, weight_);
  if (bias_) visitor.parameter(bias, *bias_);
  visitor.product(weight, {.out = weight_.rows(), .in = weight_.cols()});
}

}  // namespace moelab

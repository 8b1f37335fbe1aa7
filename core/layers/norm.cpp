#include "core/layers/norm.hpp"

#include "core/error.hpp"
#include "core/ops/norm.hpp"

namespace moelab {

Norm::Norm(Index width, const NormOptions& options) : options_(options) {
  const bool layer = options.kind == NormOptions::Kind::layer;
  require(layer || (options.affine && !options.epsilon_outside),
          "[norm] epsilon_outside, or no gain, belongs to the LayerNorm");
  if (options.affine) g_.emplace(1, width, Init::constant(1));
  if (options.affine && layer) b_.emplace(1, width, Init::constant(0));
}

Variable Norm::forward(const Variable& x, const ForwardContext& context) {
  const auto variable = [&](std::optional<Parameter>& p) {
    return p ? Variable(*p, context.record) : Variable();
  };
  if (options_.kind == NormOptions::Kind::rms) return ops::rms_norm(x, variable(g_), options_.epsilon);
  return ops::layer_norm(x, variable(g_), variable(b_), options_.epsilon, options_.epsilon_outside);
}

void Norm::visit(Visitor& visitor) {
  if (g_) visitor.parameter("g", *g_);
  if (b_) visitor.parameter("b", *b_);
}

}  // namespace moelab

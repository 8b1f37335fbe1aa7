// LayerNorm or RMSNorm with its parameters `g` and, for LayerNorm, `b`.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/module.hpp"

#include <cstdint>
#include <optional>

namespace moelab {

struct NormOptions {
  enum class Kind : std::uint8_t { rms, layer } kind = Kind::rms;
  double epsilon = 1e-5;
  bool epsilon_outside = false;  // layer only, see core/ops/norm.hpp
  bool affine = true;            // gain and bias; layer only
};

class Norm : public Module {
 public:
  Norm(Index width, const NormOptions& options);
  Variable forward(const Variable& x, const ForwardContext& context);
  void visit(Visitor& visitor) override;

 private:
  NormOptions options_;
  std::optional<Parameter> g_, b_;
};

}  // namespace moelab

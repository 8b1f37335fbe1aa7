// A linear map as a part of a module, which gives its parameters their names.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/module.hpp"

#include <optional>
#include <string_view>

namespace moelab {

// Standard deviation of initial weights, and of those that write to the residual stream of a model of
// num_layers layers, each with two sub-layers (GPT-2, Radford et al. 2019).
inline constexpr double kInitialStd = 0.02;
double residual_std(Index num_layers);

class Linear {
 public:
  // y = x W^T + b with W (out, in), normal, and b (1, out), zero at the start.
  Linear(Index in, Index out, bool bias, double std = kInitialStd);
  Variable forward(const Variable& x, const ForwardContext& context);
  // Declares the parameters and the product. `bias` is not used where there is none.
  void visit(Visitor& visitor, std::string_view weight, std::string_view bias);

 private:
  Parameter weight_;
  std::optional<Parameter> bias_;
};

}  // namespace moelab

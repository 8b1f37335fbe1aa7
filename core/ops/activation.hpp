// Activation functions of FFNs: as kernels on arrays, for blocks of rows, and as operations on the tape.
//
//   relu           max(x, 0)
//   gelu           x Phi(x), exact (Hendrycks and Gimpel 2016)
//   gelu_tanh      x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, the same paper's approximation
//   silu           x sigmoid(x)
//   relu_squared   max(x, 0)^2 (So et al. 2021)
// and gated (Shazeer 2020), of a gate and a factor that is not activated:
//   swiglu         silu(gate) up
//   geglu          gelu(gate) up;  geglu_tanh  gelu_tanh(gate) up;  reglu  relu(gate) up
//   swiglu_clamped g sigmoid(1.702 g) (u + 1), g = min(gate, 7), u = clamp(up, -7, 7) (gpt-oss)
#pragma once

#include "core/autograd.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moelab::ops {

enum class Activation : std::uint8_t {
  relu,
  gelu,
  gelu_tanh,
  silu,
  relu_squared,
  swiglu,
  geglu,
  geglu_tanh,
  reglu,
  swiglu_clamped,
};

// All names, in the order of the enum.
const std::vector<std::string>& activation_names();
// Error that lists the known names where this is none of them.
Activation activation_from_name(std::string_view name);
bool is_gated(Activation activation);

// Kernels on n consecutive entries. An output may be the same array as an input; other overlaps are not
// allowed. Error where the activation is gated, or is not.
void activate(Activation activation, const Scalar* x, Scalar* y, Index n);
// Gradients; where y, an array of its own, is not null, also the value, which is made of the same terms.
void activate_backward(Activation activation, const Scalar* x, const Scalar* dy, Scalar* dx, Scalar* y,
                       Index n);
void activate_gated(Activation activation, const Scalar* gate, const Scalar* up, Scalar* y, Index n);
void activate_gated_backward(Activation activation, const Scalar* gate, const Scalar* up, const Scalar* dy,
                             Scalar* dgate, Scalar* dup, Scalar* y, Index n);

// The same on the tape.
Variable activate(Activation activation, const Variable& x);
Variable activate_gated(Activation activation, const Variable& gate, const Variable& up);

}  // namespace moelab::ops

// One gradient check for every operation, module, router and loss, in float64.
//
//   const auto f = [](const std::vector<Variable>& x) { return ops::multiply(x[0], x[1]); };
//   CHECK(gradient_mismatch(f, {random_matrix(3, 4, 1), random_matrix(3, 1, 2)}) == "");
//
// What f returns, of any shape, is multiplied by a random probe and summed. Each entry of each input, and of
// each trainable parameter of `module`, is moved both ways by two steps; the central differences are
// extrapolated (Richardson) and compared with backward(). All gradients hold random numbers beforehand: a
// backward that overwrites instead of adding is a mismatch. Keep inputs away from kinks and ties by 0.01.
#pragma once

#include "core/autograd.hpp"
#include "core/module.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moelab::test {

using Function = std::function<Variable(const std::vector<Variable>& inputs)>;

struct GradientCheck {
  double tolerance =
      1e-7;            // of the largest entry of the gradient of that tensor (or of 1e-3, if that is more)
  double step = 1e-3;  // of the differences
  Index max_entries = 1000;  // of a tensor that are tried, evenly spread
};

// Empty if all gradients agree; otherwise where they do not, and the two values.
std::string gradient_mismatch(const Function& f, const std::vector<Matrix>& inputs, GradientCheck check = {});
// The same with the parameters of a module, whose storage is allocated. f builds its tape from them.
std::string gradient_mismatch(const Function& f, const std::vector<Matrix>& inputs, Module& module,
                              GradientCheck check = {});

// Normal numbers, different for each `stream`.
Matrix random_matrix(Index rows, Index cols, unsigned stream, double std = 1.0);

// Fills all parameters of a module with normal numbers: biases that start at 0 and gains that start at 1 hide
// faults.
void randomise_parameters(Module& module, double std = 0.5);

}  // namespace moelab::test

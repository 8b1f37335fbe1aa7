// The linear map y = x W^T + b.
#pragma once

#include "core/autograd.hpp"
#include "core/gemm.hpp"

namespace moelab {

// x (N, in), w (out, in), bias (1, out) or undefined -> y (N, out). Where w stands for a parameter its packed
// form is used, which is made once per optimizer step. Bias and sums are in Scalar whatever the precision.
Variable linear(const Variable& x, const Variable& w, const Variable& bias, gemm::Precision precision);

}  // namespace moelab

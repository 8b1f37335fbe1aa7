// The one door to matrix products: oneDNN (float32, bfloat16) where it is found, Eigen otherwise and in
// float64.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <string>

namespace moelab::gemm {

// Type of the operands of a product. Sums, master weights and everything else stay in Scalar.
enum class Precision { float32, bfloat16 };

// The three products of a linear map y = x w^T, with x (m, k), w (n, k), y (m, n). Each writes its result, or
// adds to it when `accumulate`. They split large products over the threads of core/parallel, in pieces that
// depend on the shapes alone: the bits do not depend on the number of threads.
void forward(In x, In w, Out y, Precision precision, bool accumulate = false);            // y  = x  w^T
void backward_input(In dy, In w, Out dx, Precision precision, bool accumulate = false);   // dx = dy w
void backward_weight(In dy, In x, Out dw, Precision precision, bool accumulate = false);  // dw = dy^T x

// Multiply-adds of every product executed so far in this process (m * n * k each), whatever the backend.
std::uint64_t multiply_adds();

// What runs a product of that precision here, e.g. "oneDNN 2.6.3 avx512_core_amx" or "Eigen 3.4.0 AVX512".
std::string backend(Precision precision);

// Whether bfloat16 products run natively here. Where they do not, Precision::bfloat16 computes in float32,
// and the caller says so to the user.
bool bfloat16_is_native();

}  // namespace moelab::gemm

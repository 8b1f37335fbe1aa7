// The upper half of a float32, as operand of matrix products.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>

namespace moelab {

struct Bfloat16 {
  std::uint16_t bits = 0;
};

// Rounds n values to nearest, ties to even; NaN stays NaN.
void to_bfloat16(const Scalar* from, Bfloat16* to, Index n);

}  // namespace moelab

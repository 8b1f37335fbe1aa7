// The counter behind gemm::multiply_adds(). Internal to core.
#pragma once

#include "core/tensor.hpp"

namespace moelab::gemm {

// A product (m, k) times (k, n) was executed.
void count_multiply_adds(Index m, Index n, Index k);

}  // namespace moelab::gemm

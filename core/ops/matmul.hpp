// Products of two matrices on the tape, for routers and losses, always in Scalar precision. (A linear map of
// a model is core/ops/linear.)
#pragma once

#include "core/autograd.hpp"

namespace moelab::ops {

Variable matmul(const Variable& a, const Variable& b);             // a b:   (m, k), (k, n) -> (m, n)
Variable matmul_transposed(const Variable& a, const Variable& b);  // a b^T: (m, k), (n, k) -> (m, n)

}  // namespace moelab::ops

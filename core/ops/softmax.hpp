// Softmax and its relatives, each over the entries of a row. An entry of -inf takes no part and gets no
// gradient; a row with nothing else is the caller's error.
#pragma once

#include "core/autograd.hpp"

namespace moelab::ops {

Variable row_softmax(const Variable& x);      // (N, E) -> (N, E)
Variable row_log_sum_exp(const Variable& x);  // (N, E) -> (N, 1), without overflow

}  // namespace moelab::ops

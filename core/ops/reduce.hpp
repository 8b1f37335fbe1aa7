// Sums and means on the tape. Every sum runs in a fixed order.
#pragma once

#include "core/autograd.hpp"

#include <vector>

namespace moelab::ops {

Variable sum(const Variable& x);   // (1, 1)
Variable mean(const Variable& x);  // (1, 1); error where x has no entries

Variable row_sum(const Variable& x);      // (N, E) -> (N, 1)
Variable column_sum(const Variable& x);   // (N, E) -> (1, E)
Variable column_mean(const Variable& x);  // (N, E) -> (1, E); error where x has no rows

// sum_i weights[i] * terms[i] of (1, 1) terms; 0 for none.
Variable weighted_sum(const std::vector<Variable>& terms, const std::vector<double>& weights);

}  // namespace moelab::ops

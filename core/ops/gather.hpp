// Picking entries and rows by index, and putting them back. An index may come more than once: gradients and
// scattered values add up, in the order of the lists. An index out of range is an error.
#pragma once

#include "core/autograd.hpp"

#include <vector>

namespace moelab::ops {

// y_a = x(rows[a], cols[a]). (N, E) -> (A, 1)
Variable gather_entries(const Variable& x, std::vector<Index> rows, std::vector<Index> cols);
// Row a of y is row rows[a] of x. (N, d) -> (A, d)
Variable gather_rows(const Variable& x, std::vector<Index> rows);

// y(rows[a], cols[a]) += values_a, elsewhere 0. (A, 1) -> (num_rows, num_cols)
Variable scatter_entries(const Variable& values, std::vector<Index> rows, std::vector<Index> cols,
                         Index num_rows, Index num_cols);
// Row rows[a] of y += row a of values. (A, d) -> (num_rows, d)
Variable scatter_rows(const Variable& values, std::vector<Index> rows, Index num_rows);

}  // namespace moelab::ops

// Rows divided by their size.
#pragma once

#include "core/autograd.hpp"

namespace moelab::ops {

// x / |x|_2 of each row. A row of zeros stays zero and gets no gradient.
Variable row_normalise(const Variable& x);

// x / (sum of the row + epsilon).
Variable row_normalise_sum(const Variable& x, double epsilon);

}  // namespace moelab::ops

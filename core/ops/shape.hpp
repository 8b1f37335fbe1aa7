// Cutting matrices apart and putting them together.
#pragma once

#include "core/autograd.hpp"

#include <vector>

namespace moelab::ops {

Variable slice_rows(const Variable& x, Index begin, Index count);
Variable slice_columns(const Variable& x, Index begin, Index count);

// One under the other, all of one width. Error for an empty list.
Variable concat_rows(const std::vector<Variable>& parts);
// Side by side, all of one height. Error for an empty list.
Variable concat_columns(const std::vector<Variable>& parts);

Variable transpose(const Variable& x);

}  // namespace moelab::ops

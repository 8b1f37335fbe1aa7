// Rows of a table by token id, and positions.
#pragma once

#include "core/autograd.hpp"

#include <cstdint>
#include <span>

namespace moelab::ops {

// Row n is row ids[n] of the table. (V, d), (N) -> (N, d). Error for an id that is not in [0, V).
Variable embedding(const Variable& table, std::span<const std::int32_t> ids);

// Adds row t of the table to position t of each sequence of seq_len rows. x: (N, d); table: (>= T, d).
Variable add_positions(const Variable& x, const Variable& table, Index seq_len);

// sin(t / 10000^(2 i / d)) at feature 2 i, cos of the same at 2 i + 1 (Vaswani et al. 2017, section 3.5).
// (num_positions, d_model)
Matrix sinusoidal_positions(Index num_positions, Index d_model);

}  // namespace moelab::ops

// Which rows of a batch are tokens, and what padding holds by the time that anything is computed from it.
#pragma once

#include "core/autograd.hpp"
#include "moe/ffn_block.hpp"

#include <vector>

namespace moelab::moe {

bool is_real(const TokenBatch& batch, Index token);
// The rows that are not padding, in order.
std::vector<Index> real_tokens(const TokenBatch& batch);

// x with rows of padding made 0; x itself where there is none. Padding may hold anything, NaN too, and its
// rows go through the same products as the others: 0 times NaN, in a gradient of weights, is NaN. (N, d)
Variable zero_padding(const Variable& x, const TokenBatch& batch);

}  // namespace moelab::moe

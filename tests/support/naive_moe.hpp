// An MoE layer written as slowly and plainly as possible: one token at a time, one expert at a time, from the
// formulas of the documentation, sharing no code with the library. The reference that the layer is compared
// with.
#pragma once

#include "core/tensor.hpp"
#include "moe/config.hpp"

#include <map>
#include <string>

namespace moelab::test {

using NamedMatrices = std::map<std::string, Matrix>;

// What act(w1 x) [* w3 x] w2 gives for one row; `prefix` is put before w1, b1, ...
Matrix naive_ffn(const std::string& activation, const NamedMatrices& weights, const std::string& prefix,
                 const Matrix& row);

// A top_k router with the linear projection, dropless. x: (N, d_model) -> y (N, d_model).
Matrix naive_moe(const moe::MoeConfig& config, const NamedMatrices& weights, const Matrix& x);

}  // namespace moelab::test

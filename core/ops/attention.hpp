// Scaled dot-product attention (Vaswani et al. 2017) with grouped queries (Ainslie et al. 2023), rotary
// positions (Su et al. 2021) and dropout on the attention weights.
//
// No T x T matrix is kept: backward recomputes the weights of a block of queries from the saved log-sum-exp
// of each row (Dao et al. 2022). Everything is computed in Scalar, whatever the precision of the model's
// products.
#pragma once

#include "core/autograd.hpp"
#include "core/random.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace moelab::ops {

// cos and sin of position * theta^(-2 i / d_head), each (T, d_head / 2). Half rotation, as in Llama: feature
// i turns with feature i + d_head / 2.
struct RotaryTable {
  RotaryTable(Index num_positions, Index d_head, double theta);
  Matrix cos, sin;
};

struct AttentionOptions {
  Index num_heads = 1;
  Index num_kv_heads = 1;  // divides num_heads; query head h reads key head h / (num_heads / num_kv_heads)
  bool causal = true;
  std::shared_ptr<const RotaryTable> rotary = nullptr;  // null: no rotation
  double dropout = 0;                                   // of the weights; needs `stream`
  std::optional<random::Stream> stream = std::nullopt;
};

// q: (N, H d_head), k, v: (N, H_kv d_head), rows in sequences of seq_len -> (N, H d_head). Where is_real (N,
// or empty) is 0, nobody attends to the row; a row that may attend to none gives zeros.
Variable attention(const Variable& q, const Variable& k, const Variable& v, Index seq_len,
                   std::span<const std::uint8_t> is_real, const AttentionOptions& options);

}  // namespace moelab::ops

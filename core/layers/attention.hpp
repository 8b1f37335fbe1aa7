// Multi-head self-attention with its projections `wq`, `wk`, `wv`, `wo` and, with bias, `bq`, `bk`, `bv`,
// `bo`.
#pragma once

#include "core/layers/linear.hpp"
#include "core/ops/attention.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace moelab {

struct SelfAttentionOptions {
  Index d_model = 0;
  Index num_heads = 1;     // divides d_model
  Index num_kv_heads = 1;  // divides num_heads
  bool bias = false;
  bool causal = true;
  double dropout = 0;                                        // of the attention weights
  std::shared_ptr<const ops::RotaryTable> rotary = nullptr;  // null: no rotary positions
  Index num_layers = 1;                                      // of the model, for the start of wo
  std::string name = "attn";                                 // path in the model, for its random numbers
};

class SelfAttention : public Module {
 public:
  explicit SelfAttention(const SelfAttentionOptions& options);
  // x: (N, d_model) in sequences of seq_len rows. Nobody attends to rows where is_real (N, or empty) is 0.
  Variable forward(const Variable& x, Index seq_len, std::span<const std::uint8_t> is_real,
                   const ForwardContext& context);
  void visit(Visitor& visitor) override;

 private:
  SelfAttentionOptions options_;
  Index kv_width_;
  Linear q_, k_, v_, o_;
};

}  // namespace moelab

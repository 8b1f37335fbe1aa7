// The stack that decoder and encoder share: token ids to logits.
//
//   embed (+ position) -> layers.0 ... layers.L -> final_norm (pre-norm only) -> head
#pragma once

#include "core/layers/embedding.hpp"
#include "experiments/config/model_config.hpp"
#include "experiments/models/block.hpp"

#include <optional>
#include <vector>

namespace moelab {

struct TransformerShape {
  Index num_tokens = 0;  // rows of the embedding and of the head
  Index seq_len = 0;     // longest sequence
  bool causal = true;
};

class Transformer : public Module {
 public:
  Transformer(const ModelConfig& config, const TransformerShape& shape);

  struct Output {
    Variable logits;                  // (N, num_tokens)
    std::vector<moe::FfnOutput> ffn;  // one a layer, y released
  };
  Output forward(const moe::TokenBatch& batch, const ForwardContext& context);
  void visit(Visitor& visitor) override;
  std::vector<moe::FfnBlock*> ffn_blocks();

 private:
  Variable embedded(const moe::TokenBatch& batch, const ForwardContext& context);

  TransformerShape shape_;
  Embedding embed_;
  std::optional<Embedding> position_;  // learned positions
  Variable sinusoids_;                 // (seq_len, d_model), or undefined
  double embedding_scale_ = 1;
  std::vector<std::unique_ptr<Block>> layers_;
  std::optional<Norm> final_norm_;
  Head head_;
};

}  // namespace moelab

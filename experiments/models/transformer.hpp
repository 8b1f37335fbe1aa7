// The stack that decoder and encoder share: token ids to logits.
//
//   embed (+ position) -> layers.0 ... layers.L -> final_norm (pre-norm only) -> head
#pragma once

#include "core/layers/embedding.hpp"
#include "experiments/config/model_config.hpp"
#include "experiments/models/stack.hpp"

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
  std::vector<moe::FfnBlock*> ffn_blocks() { return stack_.ffn_blocks(); }

 private:
  Embedding embed_;
  double embedding_scale_ = 1;
  Stack stack_;
  Head head_;
};

}  // namespace moelab

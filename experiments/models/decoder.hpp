// A causal language model: each position predicts the next token.
#pragma once

#include "experiments/models/model.hpp"
#include "experiments/models/transformer.hpp"

namespace moelab {

class Decoder : public Model {
 public:
  Decoder(const ModelConfig& config, Index vocab_size, Index seq_len);
  // The loss is the mean cross-entropy (nats) over the targets that are not ignored.
  ModelOutput forward(const Batch& batch, const ForwardContext& context) override;
  // (N, V), for tests and inspection.
  Variable logits(const Batch& batch, const ForwardContext& context);
  std::vector<moe::FfnBlock*> ffn_blocks() override { return transformer_.ffn_blocks(); }
  void visit(Visitor& visitor) override { transformer_.visit(visitor); }

 private:
  Transformer transformer_;
};

}  // namespace moelab

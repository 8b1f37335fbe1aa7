// A bidirectional encoder that learns to fill in masked tokens (Devlin et al. 2019, without its replacement
// by random or unchanged tokens): a share `mask_fraction` of the tokens is replaced by a mask token, which
// has the id vocab_size, and the loss is over those. In evaluation the choice depends on the tokens of the
// sequence alone, so that it is the same in every evaluation.
#pragma once

#include "experiments/models/model.hpp"
#include "experiments/models/transformer.hpp"

namespace moelab {

class Encoder : public Model {
 public:
  Encoder(const ModelConfig& config, Index vocab_size, Index seq_len);
  // The loss is the mean cross-entropy (nats) over the masked tokens.
  ModelOutput forward(const Batch& batch, const ForwardContext& context) override;
  std::vector<moe::FfnBlock*> ffn_blocks() override { return transformer_.ffn_blocks(); }
  void visit(Visitor& visitor) override { transformer_.visit(visitor); }

 private:
  double mask_fraction_;
  std::int32_t mask_token_;
  Transformer transformer_;
};

}  // namespace moelab

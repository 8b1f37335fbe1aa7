// What all Transformers share: positions, blocks and the norm after them, from hidden rows to hidden rows.
//
//   (+ position) -> layers.0 ... layers.L -> final_norm (pre-norm only)
#pragma once

#include "core/layers/embedding.hpp"
#include "experiments/config/model_config.hpp"
#include "experiments/models/block.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace moelab {

class Stack {
 public:
  // Sequences of at most seq_len positions.
  Stack(const ModelConfig& config, Index seq_len, bool causal);

  struct Output {
    Variable x;                       // (N, d_model)
    std::vector<moe::FfnOutput> ffn;  // one a layer, y released
  };
  // x: (N, d_model) without positions.
  Output forward(Variable x, const moe::TokenBatch& batch, const ForwardContext& context);
  // Declares everything under the name of the module around it.
  void visit(Visitor& visitor);
  std::vector<moe::FfnBlock*> ffn_blocks();

 private:
  Index seq_len_;
  std::optional<Embedding> position_;  // learned positions
  Variable sinusoids_;                 // (seq_len, d_model), or undefined
  std::vector<std::unique_ptr<Block>> layers_;
  std::optional<Norm> final_norm_;
};

}  // namespace moelab

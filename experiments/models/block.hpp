// One transformer layer: self-attention and an FFN, each with a norm and a residual connection.
//
//   pre-norm:   x = x + dropout(attn(norm1(x)));   x = x + dropout(ffn(norm2(x)))
//   post-norm:  x = norm1(x + dropout(attn(x)));   x = norm2(x + dropout(ffn(x)))     (Vaswani et al. 2017)
#pragma once

#include "core/layers/attention.hpp"
#include "core/layers/norm.hpp"
#include "moe/ffn_block.hpp"

#include <memory>
#include <string>

namespace moelab {

struct BlockOptions {
  SelfAttentionOptions attention;
  NormOptions norm;
  bool pre_norm = true;
  double dropout = 0;             // of the sub-layers' outputs
  std::string name = "layers.0";  // path in the model, for random numbers and the observer
};

class Block : public Module {
 public:
  Block(const BlockOptions& options, std::unique_ptr<moe::FfnBlock> ffn);
  // x: (N, d_model) -> (N, d_model), with the losses and the routing of the FFN.
  moe::FfnOutput forward(const Variable& x, const moe::TokenBatch& batch, const ForwardContext& context);
  void visit(Visitor& visitor) override;
  moe::FfnBlock& ffn() { return *ffn_; }

 private:
  // x + dropout(y) with the numbers of that sub-layer.
  Variable residual(const Variable& x, const Variable& y, const char* sublayer,
                    const ForwardContext& context) const;
  // norm(x). Both tell the observer what comes out.
  Variable normalise(Norm& norm, const char* name, const Variable& x, const ForwardContext& context) const;

  BlockOptions options_;
  Norm norm1_;
  SelfAttention attn_;
  Norm norm2_;
  std::unique_ptr<moe::FfnBlock> ffn_;
};

}  // namespace moelab

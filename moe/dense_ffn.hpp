// The dense FFN block: every row through one FfnExpert.
#pragma once

#include "moe/experts/ffn.hpp"
#include "moe/ffn_block.hpp"

namespace moelab::moe {

class DenseFfn final : public FfnBlock {
 public:
  DenseFfn(const FfnExpertOptions& options, const ExpertShape& shape) : ffn_(options, shape) {}
  FfnOutput forward(const Variable& x, const TokenBatch& batch, const ForwardContext& context) override;
  void visit(Visitor& visitor) override { visitor.module("", ffn_, "dense_ffn"); }

 private:
  FfnExpert ffn_;
};

}  // namespace moelab::moe

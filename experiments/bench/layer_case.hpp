// A mixture layer as it is measured: with its parameters, an input and a gradient.
#pragma once

#include "core/context.hpp"
#include "core/module.hpp"
#include "moe/ffn_block.hpp"

#include <memory>
#include <string>
#include <vector>

namespace moelab::bench {

// SwiGLU experts behind a softmax top-k router with normalised weights.
struct LayerShape {
  Index tokens = 0;  // N
  Index d_model = 0;
  Index d_ff = 0;         // of an expert
  Index num_experts = 0;  // E
  Index top_k = 0;        // k
  std::string name() const;
  // FLOPs of the expert products, forward.
  double flops() const;
};

class LayerCase {
 public:
  LayerCase(const LayerShape& shape, gemm::Precision precision);
  // The dense FFN of equal active FLOPs: d_ff * k.
  static std::unique_ptr<LayerCase> dense_twin(const LayerShape& shape, gemm::Precision precision);

  void forward();
  // Forward and backward as in a training step: gradients are cleared first, and weights count as changed, so
  // that they are packed again.
  void forward_backward();
  // Rows that each expert gets. Of mixtures.
  std::vector<Index> rows_of_experts();

 private:
  LayerCase(const LayerShape& shape, gemm::Precision precision, bool dense);

  Index tokens_;
  ForwardContext context_;
  std::unique_ptr<moe::FfnBlock> layer_;
  std::unique_ptr<ParameterStore> store_;
  Variable x_;  // (N, d_model)
  Matrix dy_;   // (N, d_model)
};

}  // namespace moelab::bench

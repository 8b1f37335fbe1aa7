// The matrix products of a mixture layer and nothing else: no router, gather, activation or combine. The
// denominator of the layer's efficiency.
#pragma once

#include "experiments/bench/layer_case.hpp"

namespace moelab::bench {

// The same blocks and shapes as the layer: every expert's rows in blocks with their tails padded, gate and up
// side by side, gradients of weights set, weights packed beforehand, operands already in the type of the
// product and, but for weights and their gradients, in cache. Blocks run on all threads.
class LayerProducts {
 public:
  LayerProducts(const LayerShape& shape, gemm::Precision precision, std::vector<Index> rows_of_experts);
  ~LayerProducts();

  void forward();
  void forward_backward();

 private:
  struct Weights;
  struct Block {
    std::size_t expert;
    Index rows, padded;
  };
  // One operand of that many rows, for everything that reads it.
  struct Operands;

  void backward();

  LayerShape shape_;
  std::vector<Index> rows_;
  std::vector<Block> blocks_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Operands> operands_;
};

// GFLOP/s of one product (rows, in) x (in, out) in a block on one thread, weights packed: what the height of
// a block is worth.
double block_gflops(Index rows, Index out, Index in, gemm::Precision precision);

}  // namespace moelab::bench

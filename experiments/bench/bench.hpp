// The benchmarks of `moelab bench`.
#pragma once

#include "experiments/bench/layer_case.hpp"
#include "experiments/bench/table.hpp"
#include "experiments/bench/timing.hpp"

#include <string>
#include <vector>

namespace moelab::bench {

struct Options {
  Repeats repeats;
  std::vector<gemm::Precision> precisions = {gemm::Precision::float32, gemm::Precision::bfloat16};
  // A Python interpreter with PyTorch, and where the peers' scripts lie; empty: no comparison.
  std::string peer;
  std::string peer_scripts;
};

const char* name_of(gemm::Precision precision);

// One mixture layer in four shapes: its speed, the share of what its products alone reach, and its time over
// that of a dense FFN of equal active FLOPs.
Report bench_layer(const Options& options, const std::vector<LayerShape>& shapes);
// The shapes of the peer's script.
std::vector<LayerShape> layer_shapes();

// Training steps of a small decoder, dense and mixture of equal active FLOPs.
struct DecoderShape {
  Index d_model = 256;
  Index num_layers = 4;
  Index num_heads = 4;
  Index d_ff = 384;  // of an expert; the dense FFN has twice this
  Index num_experts = 8;
  Index top_k = 2;
  Index vocab_size = 256;
  Index seq_len = 256;
  Index batch = 16;
};
Report bench_train(const Options& options, const DecoderShape& shape);

// More experts at the same active compute, more threads, other block heights.
Report bench_scaling(const Options& options, const LayerShape& shape, Index most_experts);

}  // namespace moelab::bench

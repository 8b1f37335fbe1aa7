// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, through Random123).
//
// A draw is a function of (seed, stream name, step, index) and of nothing else: there is no generator state
// to save on a checkpoint, and the number of threads changes nothing.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace moelab::random {

class Stream {
 public:
  // `name` says what the numbers are for, e.g. "init/layers.0.ffn.w1" or "dropout/layers.0.ffn".
  Stream(std::uint64_t seed, std::string_view name, std::uint64_t step = 0);

  std::uint64_t bits(std::uint64_t index) const;
  // Uniform in [0, 1), with 53 bits.
  double uniform(std::uint64_t index) const;
  // Standard normal (Box-Muller on the two halves of one draw).
  double normal(std::uint64_t index) const;
  // Uniform integer in [0, bound), without modulo bias beyond 2^-64. Error if bound is 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

 private:
  std::uint64_t key_;
  std::uint64_t step_;
};

// Entry (i, j) is mean-zero normal number i * cols + j of the stream, times std.
void fill_normal(Out out, const Stream& stream, double std);

// A permutation of 0..n-1 (Fisher-Yates).
std::vector<Index> permutation(Index n, const Stream& stream);

}  // namespace moelab::random

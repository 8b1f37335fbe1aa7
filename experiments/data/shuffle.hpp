// Orders of training that need neither a table nor a state.
#pragma once

#include "core/random.hpp"

#include <cstdint>

namespace moelab {

// A permutation of 0..size-1 that is computed entry by entry: a Feistel network with random round functions
// on the next power of four, walked along its cycles until it is back in range (Black and Rogaway 2002,
// "Ciphers with arbitrary finite domains"). Different streams give different permutations.
class Shuffle {
 public:
  // Error if size is below 1 or above 2^62.
  Shuffle(std::int64_t size, const random::Stream& stream);
  // Entry i, 0 <= i < size.
  std::int64_t operator()(std::int64_t i) const;

 private:
  std::uint64_t size_;
  int half_bits_;
  random::Stream stream_;
};

}  // namespace moelab

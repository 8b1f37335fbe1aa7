// Inverted dropout (Srivastava et al. 2014): each entry is dropped with probability `rate`, the others are
// divided by 1 - rate. The factor of an entry is a function of the stream and of the entry's number, the same
// forward and backward, so that no mask is stored.
#pragma once

#include "core/autograd.hpp"
#include "core/random.hpp"

#include <cstdint>

namespace moelab::ops {

// The factors of dropout: 0 or 1 / (1 - rate). Error unless 0 <= rate < 1.
class DropoutMask {
 public:
  DropoutMask(double rate, const random::Stream& stream);
  // The factors of entries first, ..., first + n - 1.
  void factors(std::uint64_t first, Index n, Scalar* out) const;

 private:
  std::uint64_t key_;
  std::uint32_t threshold_;  // of 32 random bits
  Scalar kept_;
};

// x itself where the rate is 0.
Variable dropout(const Variable& x, double rate, const random::Stream& stream);

}  // namespace moelab::ops

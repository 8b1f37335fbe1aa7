// Inverted dropout (Srivastava et al. 2014): each entry is dropped with probability `rate`, the others are
// divided by 1 - rate. Entry i of the row-major matrix uses number i of the stream, forward and backward, so
// that no mask is stored.
#pragma once

#include "core/autograd.hpp"
#include "core/random.hpp"

#include <cstdint>

namespace moelab::ops {

// The factors of dropout: 0 or 1 / (1 - rate). Error unless 0 <= rate < 1.
class DropoutMask {
 public:
  DropoutMask(double rate, const random::Stream& stream);
  Scalar factor(std::uint64_t index) const { return stream_.bits(index) < threshold_ ? Scalar{0} : kept_; }

 private:
  random::Stream stream_;
  std::uint64_t threshold_;  // of the 64 random bits
  Scalar kept_;
};

// x itself where the rate is 0.
Variable dropout(const Variable& x, double rate, const random::Stream& stream);

}  // namespace moelab::ops

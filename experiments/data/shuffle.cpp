#include "experiments/data/shuffle.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <bit>

namespace moelab {
namespace {

constexpr int kRounds = 6;

}  // namespace

Shuffle::Shuffle(std::int64_t size, const random::Stream& stream)
    : size_(static_cast<std::uint64_t>(size)), half_bits_(1), stream_(stream) {
  require(size >= 1 && size <= (std::int64_t{1} << 62), "[shuffle] size {} is not in 1..2^62", size);
  half_bits_ = std::max(1, static_cast<int>(std::bit_width(size_ - 1) + 1) / 2);
}

std::int64_t Shuffle::operator()(std::int64_t i) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t x = static_cast<std::uint64_t>(i);
  do {
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & mask;
    for (int round = 0; round < kRounds; ++round) {
      // Index of the draw: the round above the half (31 bits at most).
      const std::uint64_t mixed = stream_.bits((static_cast<std::uint64_t>(round) << 32) | right) & mask;
      const std::uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    x = (left << half_bits_) | right;
  } while (x >= size_);
  return static_cast<std::int64_t>(x);
}

}  // namespace moelab

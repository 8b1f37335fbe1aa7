// Which window of which domain the i-th training sequence is: a function of (seed, i) alone.
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <vector>

namespace moelab {

// Sequences come in blocks of 1024. In each block every domain has the same number of sequences, its share by
// weight (rounded, at least one), in shuffled places. Within a domain an epoch goes through every window
// once, in an order of its own.
class TrainingOrder {
 public:
  static constexpr Index kBlock = 1024;

  struct Place {
    Index domain = 0;
    std::int64_t epoch = 0;
    std::int64_t window = 0;  // 0 <= window < num_windows[domain]
  };

  // Error without domains, with more than kBlock, or with a weight or number of windows that is not positive.
  TrainingOrder(const std::vector<double>& weights, std::vector<std::int64_t> num_windows);
  Place at(std::uint64_t seed, std::int64_t sequence) const;
  // Sequences of each domain in a block.
  const std::vector<Index>& quotas() const { return quotas_; }

 private:
  std::vector<std::int64_t> num_windows_;
  std::vector<Index> quotas_;
};

}  // namespace moelab

// Task losses: a mean over the rows that count, and the loss of each row.
#pragma once

#include "core/autograd.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace moelab::ops {

struct TaskLoss {
  Variable mean;             // (1, 1) over the rows that count; 0 where none does
  std::vector<double> rows;  // (N) NaN where the row does not count
  Index num_counted = 0;
};

// -log softmax(logits)[target] in nats. logits: (N, V); rows whose target is ignore_index do not count. Error
// for any other target that is not in [0, V).
TaskLoss cross_entropy(const Variable& logits, std::span<const std::int32_t> targets,
                       std::int32_t ignore_index);

// Mean over the d_out columns of (prediction - target)^2. (N, d_out); rows where is_real is 0 do not count
// (empty: all count).
TaskLoss squared_error(const Variable& prediction, In target, std::span<const std::uint8_t> is_real);

}  // namespace moelab::ops

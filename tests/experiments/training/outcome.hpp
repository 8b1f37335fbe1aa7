// What a run leaves, but for times: the same whatever happened on the way.
#pragma once

#include "core/tensor.hpp"
#include "experiments/results/run_data.hpp"

#include <filesystem>
#include <vector>

namespace moelab {

struct Outcome {
  std::vector<Matrix> parameters;  // of the newest checkpoint
  RunData results;
};

Outcome outcome_of(const std::filesystem::path& run_folder);

// Checks that all of two is the same, bit for bit.
void check_same(const Outcome& a, const Outcome& b);

}  // namespace moelab

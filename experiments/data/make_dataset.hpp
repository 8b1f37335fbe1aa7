// From the `data:` block to what training reads.
#pragma once

#include "experiments/data/data_config.hpp"
#include "experiments/data/dataset.hpp"

#include <memory>

namespace moelab {

// Loads the data. One data set serves all runs with the same block, from several threads at once.
// Error for a file that is missing (names its package), empty or binary, or a domain too short for its
// sequences.
std::unique_ptr<const Dataset> make_dataset(const DataConfig& config);

}  // namespace moelab

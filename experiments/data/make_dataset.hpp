// From the `data:` block to what training reads.
#pragma once

#include "experiments/data/data_config.hpp"
#include "experiments/data/dataset.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace moelab {

struct DataOptions {
  // Where tokens are kept for later, and read from without taking memory (see default_cache_folder). Empty:
  // nowhere; they are in memory.
  std::filesystem::path cache = {};
  std::function<void(const std::string&)> note = [](const std::string&) {};  // a line for people
};

// Loads the data; they are the same with and without a cache. One that cannot be written is noted. One data
// set serves all runs with the same block, from several threads at once. Error for a file that is missing
// (names its package), empty or binary, or a domain too short for its sequences.
std::unique_ptr<const Dataset> make_dataset(const DataConfig& config, const DataOptions& options = {});

}  // namespace moelab

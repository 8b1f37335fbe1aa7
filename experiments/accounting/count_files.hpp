// Counting of files, as `moelab count` does it.
#pragma once

#include "core/tensor.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab {

struct CountOptions {
  // Experiments (YAML), Hugging Face configs (JSON), and overrides a.b=c that go to all experiments.
  std::vector<std::string> arguments;
  std::optional<Index> context;  // absent: seq_len of an experiment's data, 4096 for a published model
  bool json = false;
};

// The table or the JSON. ConfigError for a file that cannot be read or is wrong.
std::string count_files(const CountOptions& options);

}  // namespace moelab

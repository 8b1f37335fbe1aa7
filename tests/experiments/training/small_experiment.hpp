// A small experiment on made-up text, for tests of training.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/data/dataset.hpp"
#include "tests/support/temporary_folder.hpp"

#include <memory>
#include <string>
#include <vector>

namespace moelab {

// 12 steps of 128 tokens of a decoder with two layers; variants `dense` and `moe`; evaluated every 4 steps.
struct SmallExperiment {
  explicit SmallExperiment(std::vector<std::string> overrides = {});
  const Run& run(const std::string& variant) const;

  TemporaryFolder folder;
  Experiment experiment;
  std::unique_ptr<const Dataset> data;
};

}  // namespace moelab

// A folder with a small experiment, and the program that runs it there.
#pragma once

#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/process.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

struct RunPlace {
  SmallExperiment fixture;
  std::filesystem::path root = fixture.folder.path();
  std::filesystem::path messages = root / "messages";

  // Of `moelab run` with that many steps, and a snapshot and a checkpoint at every second of them.
  std::vector<std::string> arguments(const std::string& output, const std::string& steps = "24") const;

  // The newest execution below `root / output`.
  std::filesystem::path latest(const std::string& output) const;

  // stderr goes to `messages`; what stands there.
  StartOptions told() const;
  std::string said() const;

  // Exit codes. `output` is below the root.
  int run(const std::string& output) const;
  int resume(const std::string& output, const std::vector<std::string>& overrides = {}) const;
};

// Checks that two executions have the same runs, that those of the second are done, and the curves of both
// are the same to the bit.
void check_same_curves(const std::filesystem::path& one, const std::filesystem::path& two);

}  // namespace moelab

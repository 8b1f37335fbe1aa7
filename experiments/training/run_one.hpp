// One run from its config to its folder of results.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/training/trainer.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct RunResult {
  RunStatus status = RunStatus::failed;
  std::string reason;  // why it failed, diverged or was interrupted
};

// What a run needs besides its config.
struct RunSetup {
  const Dataset& data;
  std::filesystem::path folder;  // of the run; exists
  SweepPoint point;              // empty: no sweep
  std::vector<std::pair<std::string, std::string>> provenance;
  // The folder may hold an unfinished run: go on from its newest good checkpoint, or from the start where
  // there is none. Otherwise such a folder is an error.
  bool resume = false;
  // Of the file that model.init names, as the execution began with it: Error where it is another one. Empty:
  // not known.
  std::string initial_checksum = {};
  TrainerHooks hooks = {};
  std::function<void(std::int64_t)> begun = [](std::int64_t) {};  // told the steps that were taken before
  std::function<void(const std::string&)> note = [](const std::string&) {};  // a line for people
};

// What run_one with `resume` would refuse, before anything is written: ConfigError where the config is not
// that of the run's newest good checkpoint, Error where a file that may be whole cannot be read now.
void require_resumable(const Run& run, const RunSetup& setup);

// Trains the run and leaves its last snapshot and log.txt in its folder. An error of the run itself becomes
// its status and reason, in the snapshot too.
RunResult run_one(const Run& run, const RunSetup& setup);

}  // namespace moelab

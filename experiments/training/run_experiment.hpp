// From an experiment file to results: every run trained, one results file of them all.
#pragma once

#include "experiments/config/experiment.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct RunOptions {
  std::filesystem::path output_root = "runs";
  Index jobs = 0;  // runs at a time; 0: as many as there are threads
  bool quiet = false;
  std::filesystem::path data_cache = {};  // see DataOptions
  std::string command_line;               // for the provenance
  std::filesystem::path resume;           // folder of an execution to finish; empty: a new one
  std::function<bool()> stop_requested = [] { return false; };
};

struct FailedRun {
  std::string name;
  std::string reason;
};

struct ExperimentOutcome {
  std::filesystem::path folder;   // of this execution
  std::filesystem::path results;  // results.h5
  std::vector<FailedRun> failed;  // diverged runs included
  bool interrupted = false;
};

// Trains the runs, several at a time, each on the threads that the others leave free; a run that fails or
// diverges does not stop the others, a stop request does. Progress goes to stderr. results.h5 is written anew
// after each run. The experiment that an execution in `folder` was started with; `overrides` come on top of
// its own.
Experiment load_execution(const std::filesystem::path& folder, LoadOptions options);

ExperimentOutcome run_experiment(const Experiment& experiment, const RunOptions& options);

}  // namespace moelab

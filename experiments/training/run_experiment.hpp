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
  Index jobs = 0;  // see jobs_at_a_time
  bool quiet = false;
  std::filesystem::path data_cache = {};  // see DataOptions
  std::string command_line;               // for the provenance
  std::filesystem::path resume;           // folder of an execution to finish; empty: a new one
  std::function<bool()> stop_requested = [] { return false; };
};

struct FailedRun {
  std::string name;
  std::string reason;
  bool diverged = false;
};

struct ExperimentOutcome {
  std::filesystem::path folder;   // of this execution
  std::filesystem::path results;  // results.h5
  std::vector<FailedRun> failed;  // diverged runs included
  bool interrupted = false;
  std::size_t num_runs = 0;  // that the execution has to train, those of earlier times included
  std::size_t num_done = 0;  // of these
};

// Trains the runs, several at a time, each on the threads that the others leave free; a run that fails or
// diverges does not stop the others, a stop request does. Progress goes to stderr. results.h5 is written anew
// after each run, of all runs of the execution that have left a snapshot. One process at a time works in the
// folder of an execution: Error where another one does.
ExperimentOutcome run_experiment(const Experiment& experiment, const RunOptions& options);

// Runs at a time: as many as wanted (0: as possible), not more than there are threads.
Index jobs_at_a_time(Index wanted);

}  // namespace moelab

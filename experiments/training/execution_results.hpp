// What the runs of an execution have left, and the results file of them all.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/results/run_data.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/pace.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace moelab {

// One thread at a time.
class ExecutionResults {
 public:
  // The arguments must outlive it; `note` tells people.
  ExecutionResults(const RunStore& store, const Experiment& experiment,
                   std::function<void(const std::string&)> note)
      : store_(store), experiment_(experiment), note_(std::move(note)) {}

  // Looks at the snapshot that a run has left, if any; see status_in.
  void look_at(const std::string& run);
  // A run is trained now: its old snapshot is about to be replaced, and does not count.
  void begin(const std::string& run) { status_of_.erase(run); }
  void end(const std::string& run, RunStatus status) { status_of_[run] = status; }
  bool is_done(const std::string& run) const;

  // The results file of all runs that have ended, now or in an earlier execution, in the order of the
  // experiment.
  void write() const;
  // The same as runs end. Each file holds all runs so far, so it is not written after every one. One that
  // cannot be written is noted: it is no fault of the run.
  void write_as_runs_end();

 private:
  double seconds() const;
  const RunStore& store_;
  const Experiment& experiment_;
  std::function<void(const std::string&)> note_;
  std::map<std::string, RunStatus> status_of_;  // of runs that left a snapshot and are not trained now
  Pace pace_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace moelab

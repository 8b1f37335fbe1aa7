// results.h5, and run.h5, which is a results file of one run.
#pragma once

#include "core/hdf5.hpp"
#include "experiments/results/summary.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

// What was asked, kept with the answer.
struct ExperimentInfo {
  std::string name;
  std::string description;
  std::string config_source;           // the experiment file, as it was read
  std::vector<std::string> overrides;  // of the command line
  std::string baseline;                // variant that others are compared with; empty: the first
  std::string metric = "eval/loss";
  double confidence = 0.95;
};

// Writes a file with the one run.
void write_run_file(const std::filesystem::path& path, const RunData& data);

// Writes the results of an experiment from the files of its runs (each a results file of one or more runs),
// one run in memory at a time. Error if a run comes twice.
void write_results_file(const std::filesystem::path& path, const ExperimentInfo& experiment,
                        const std::vector<std::filesystem::path>& run_files);

// A metric over the course of a run.
struct Series {
  std::vector<double> step, tokens, time;  // (n); time is NaN where it was not recorded
  std::vector<double> value;               // (n)
};

// Reads results.h5 or run.h5.
class ResultsFile {
 public:
  // DamagedFile where it is no results file; another Error where it cannot be read, or is of another version.
  explicit ResultsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return reader_.path(); }
  const ExperimentInfo& experiment() const { return experiment_; }
  const std::vector<RunSummary>& runs() const { return runs_; }
  // Error listing the runs that there are.
  const RunSummary& run(const std::string& name) const;
  // A metric as in "eval/loss", "train/grad_norm", "eval/loss/<domain>"; nothing where the run has none.
  std::optional<Series> series(const std::string& run, const std::string& metric) const;
  // Path of a run's group, to read anything else from reader().
  static std::string group_of(const std::string& run) { return "runs/" + run; }
  const hdf5::Reader& reader() const { return reader_; }

 private:
  hdf5::Reader reader_;
  ExperimentInfo experiment_;
  std::vector<RunSummary> runs_;
};

}  // namespace moelab

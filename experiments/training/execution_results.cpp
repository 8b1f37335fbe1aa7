#include "experiments/training/execution_results.hpp"

#include "experiments/results/results_file.hpp"
#include "experiments/training/open_execution.hpp"

#include <exception>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

namespace moelab {

void ExecutionResults::look_at(const std::string& run) {
  if (const auto status = status_in(store_.run_folder(run), note_)) status_of_[run] = *status;
}

bool ExecutionResults::is_done(const std::string& run) const {
  const auto status = status_of_.find(run);
  return status != status_of_.end() && status->second == RunStatus::done;
}

void ExecutionResults::write() const {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : experiment_.run_names) {
    if (status_of_.contains(name)) files.push_back(store_.run_folder(name) / "run.h5");
  }
  write_results_file(store_.results_path(), info_of(experiment_), files);
}

void ExecutionResults::write_as_runs_end() {
  const double begin = seconds();
  if (!pace_.is_due(begin)) return;
  try {
    write();
  } catch (const std::exception& e) {
    note_(fmt::format("{}; it is tried again at the end", e.what()));
  }
  pace_.took(begin, seconds());
}

double ExecutionResults::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

}  // namespace moelab

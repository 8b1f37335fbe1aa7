#include "experiments/training/load_execution.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/config/difference.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/open_execution.hpp"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

namespace moelab {

namespace {

using Names = std::set<std::string>;

Names set_of(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

std::vector<std::string> missing(const std::vector<std::string>& names, const Names& in) {
  std::vector<std::string> out;
  std::ranges::copy_if(names, std::back_inserter(out), [&](const auto& name) { return !in.contains(name); });
  return out;
}

// The runs that the file gives now, against those it gave then.
void require_same_runs(const std::filesystem::path& folder, const ExecutionRecord& record,
                       const Experiment& experiment, bool has_new_overrides) {
  const std::vector<std::string> gone = missing(record.runs, set_of(experiment.run_names));
  if (!gone.empty()) {
    throw ConfigError(
        fmt::format("{}: cannot go on: it has runs that the experiment no longer gives: {}\n  an override, "
                    "or an environment "
                    "variable that the file reads, is not what it was at the start",
                    folder.string(), fmt::join(gone, ", ")));
  }
  if (has_new_overrides) return;
  Names known = set_of(record.runs);
  known.insert(record.other_runs.begin(), record.other_runs.end());
  const std::vector<std::string> added = missing(experiment.run_names, known);
  if (!added.empty()) {
    throw ConfigError(fmt::format(
        "{}: cannot go on: the experiment gives runs that it did not give at the start: {}\n  an environment "
        "variable that the file reads is not what it was",
        folder.string(), fmt::join(added, ", ")));
  }
}

struct Change {
  bool done = false;
  std::vector<std::string> differences;  // in what may not differ
};

// Error naming the file where it is damaged.
Change change_since(const std::filesystem::path& folder, const std::string& before, const Run& run) {
  const std::vector<std::int64_t> steps = CheckpointFolder(folder / "checkpoints").steps();
  const std::int64_t newest = steps.empty() ? 0 : steps.front();
  const auto told_later = [](const std::string&) {};  // of a damaged snapshot, where the run is gone on with
  const bool ended = status_in(folder, told_later) == RunStatus::done;
  try {
    // All steps are taken: its last evaluation may be recorded, whatever has become of run.h5.
    const bool done = ended || newest >= steps_of_resolved(before);
    return {done, done ? differences_against_done(before, run.resolved_yaml)
                       : differences_against_resume(before, run.resolved_yaml, newest)};
  } catch (const Error& e) {
    fail("{}: {}", (folder / "resolved.yaml").string(), e.what());
  }
}

void require_same_configs(const RunStore& store, const Experiment& experiment) {
  std::vector<std::string> lines;
  for (const Run& run : experiment.runs) {
    const std::filesystem::path folder = store.run_folder(run.name);
    if (!std::filesystem::exists(folder / "resolved.yaml")) continue;
    const std::string before = read_file(folder / "resolved.yaml");
    if (before == run.resolved_yaml) continue;
    const auto [done, differences] = change_since(folder, before, run);
    if (differences.empty()) continue;
    lines.push_back(fmt::format("{}, which {}:\n  {}", run.name, done ? "is done" : "was begun",
                                fmt::join(differences, "\n  ")));
  }
  if (lines.empty()) return;
  throw ConfigError(
      fmt::format("{}: cannot go on: the config has changed; runs of two configs would stand in one "
                  "comparison.\n{}\nWhat "
                  "is to be run with another config is an execution of its own.",
                  store.folder().string(), fmt::join(lines, "\n")));
}

}  // namespace

Experiment load_execution(const std::filesystem::path& folder, LoadOptions options,
                          const RunSelection& selection) {
  const RunStore store = RunStore::open(folder);
  const ExecutionRecord record = store.record();
  const bool has_new_overrides = !options.overrides.empty();
  options.overrides.insert(options.overrides.begin(), record.overrides.begin(), record.overrides.end());
  options.initial_weights = record.initial_weights;
  options.initial_checksums = record.initial_checksums;
  options.folder = store.source_folder();
  Experiment experiment = load_experiment(store.folder() / "experiment.yaml", options);
  require_same_runs(store.folder(), record, experiment, has_new_overrides);
  require_same_configs(store, experiment);
  if (selection.is_everything()) {
    // Those that were left out at the start stay out.
    const Names left_out = set_of(record.other_runs);
    keep_runs(experiment, [&](const Run& run) { return !left_out.contains(run.name); });
  } else {
    // The baseline counts for the results, which hold what is not selected, too.
    const std::optional<std::string> baseline = experiment.compare.baseline;
    select_runs(experiment, selection);
    experiment.compare.baseline = baseline;
  }
  return experiment;
}

}  // namespace moelab

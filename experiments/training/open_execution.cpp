#include "experiments/training/open_execution.hpp"

#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "experiments/results/experiment_json.hpp"

#include <set>

namespace moelab {

ExperimentInfo info_of(const Experiment& experiment) {
  ExperimentInfo info;
  info.name = experiment.name;
  info.description = experiment.description;
  info.config_source = experiment.source;
  info.overrides = experiment.overrides;
  info.baseline = experiment.compare.baseline.value_or("");
  info.metric = experiment.compare.metric;
  info.confidence = experiment.compare.confidence;
  return info;
}

ExecutionRecord record_of(const Experiment& experiment, const ExecutionRecord& before) {
  std::set<std::string> trained(before.runs.begin(), before.runs.end());
  for (const Run& run : experiment.runs) trained.insert(run.name);
  ExecutionRecord record{
      experiment.overrides, {}, {}, experiment.initial_weights, experiment.initial_checksums};
  for (const std::string& name : experiment.run_names) {
    (trained.contains(name) ? record.runs : record.other_runs).push_back(name);
  }
  return record;
}

RunStore create_store(const Experiment& experiment, const RunOptions& options) {
  RunStore store =
      RunStore::create(options.output_root, experiment.name, experiment.source,
                       std::filesystem::absolute(experiment.file).parent_path(), record_of(experiment, {}));
  write_experiment_json(store.info_path(), info_of(experiment));
  return store;
}

RunStore open_store(const std::filesystem::path& folder) {
  RunStore store = RunStore::open(folder);
  store.lock();
  return store;
}

std::optional<RunStatus> status_in(const std::filesystem::path& folder,
                                   const std::function<void(const std::string&)>& note) {
  const std::filesystem::path snapshot = folder / "run.h5";
  if (!file_exists(snapshot)) return std::nullopt;
  try {
    const ResultsFile file(snapshot);
    require_whole(file.runs().size() == 1, "[results] {} holds {} runs instead of one", snapshot.string(),
                  file.runs().size());
    return file.runs().front().status;
  } catch (const DamagedFile& error) {
    note(fmt::format("passed over: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace moelab

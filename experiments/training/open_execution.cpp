#include "experiments/training/open_execution.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/config/difference.hpp"
#include "experiments/results/experiment_json.hpp"

#include <map>
#include <set>

namespace moelab {

namespace {

std::string data_block_in(const std::filesystem::path& resolved) {
  try {
    return part_of_resolved(read_file(resolved), "data");
  } catch (const Error& e) {
    fail("{}: {}", resolved.string(), e.what());
  }
}

}  // namespace

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
  ExecutionRecord record{experiment.overrides, {}, {}, experiment.initial_weights};
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

void require_same_data(const RunStore& store, const Experiment& experiment,
                       const std::function<const Dataset&(const Run&)>& data_of) {
  using Files = std::vector<std::pair<std::string, std::string>>;
  std::map<std::string, Files> files_of;  // by data block
  for (const Run& run : experiment.runs) {
    const auto [block, is_new] = files_of.try_emplace(part_of_resolved(run.resolved_yaml, "data"));
    if (is_new) block->second = data_of(run).files();
  }
  for (const std::string& run : store.runs()) {
    const std::filesystem::path folder = store.run_folder(run);
    if (!std::filesystem::exists(folder / "resolved.yaml")) continue;
    const auto block = files_of.find(data_block_in(folder / "resolved.yaml"));
    if (block == files_of.end()) continue;
    for (const auto& [name, content] : block->second) {
      const std::filesystem::path file = folder / name;
      if (!std::filesystem::exists(file) || read_file(file) == content) continue;
      throw ConfigError(fmt::format(
          "{}: cannot go on: the data have changed since {} was begun, {} would be another; runs on "
          "different data would stand in one comparison.\nWhat is to be run on other data is an execution of "
          "its own.",
          store.folder().string(), run, file.string()));
    }
  }
}

std::optional<RunStatus> status_in(const std::filesystem::path& folder,
                                   const std::function<void(const std::string&)>& note) {
  const std::filesystem::path snapshot = folder / "run.h5";
  if (!std::filesystem::exists(snapshot)) return std::nullopt;
  try {
    const ResultsFile file(snapshot);
    require(file.runs().size() == 1, "[results] {} holds {} runs instead of one", snapshot.string(),
            file.runs().size());
    return file.runs().front().status;
  } catch (const Error& error) {
    note(fmt::format("passed over: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace moelab

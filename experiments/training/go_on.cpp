#include "experiments/training/go_on.hpp"

#include "core/error.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/training/open_execution.hpp"
#include "experiments/training/run_one.hpp"
#include "experiments/training/same_data.hpp"

#include <algorithm>

namespace moelab {

namespace {

// What runs have left must be readable, and that of runs that are not done such that they can go on.
void look_at_runs(const RunStore& store, const Experiment& experiment, const ExecutionRecord& record,
                  DatasetCache& datasets, ExecutionResults& results) {
  try {
    for (const std::string& name : record.runs) results.look_at(name);
    for (const Run& run : experiment.runs) {
      const std::filesystem::path folder = store.run_folder(run.name);
      if (results.is_done(run.name) || !std::filesystem::is_directory(folder)) continue;
      require_resumable(run, {datasets.get(run.config.data), folder, {}, {}});
    }
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& e) {
    fail(
        "{}: cannot go on, and nothing is changed: {}\nWhat cannot be read now may be whole: see that it "
        "can be read, or move it away.",
        store.folder().string(), e.what());
  }
}

}  // namespace

void go_on_with(RunStore& store, const Experiment& experiment, DatasetCache& datasets,
                ExecutionResults& results) {
  require_same_data(store, experiment,
                    [&](const DataConfig& config) -> const Dataset& { return datasets.get(config); });
  const ExecutionRecord before = store.record();
  require(before.overrides.size() <= experiment.overrides.size() &&
              std::equal(before.overrides.begin(), before.overrides.end(), experiment.overrides.begin()),
          "[run] {}: another process has gone on with it meanwhile", store.folder().string());
  const ExecutionRecord now = record_of(experiment, before);
  look_at_runs(store, experiment, now, datasets, results);
  if (now != before) store.set_record(now);
  write_experiment_json(store.info_path(), info_of(experiment));
}

}  // namespace moelab

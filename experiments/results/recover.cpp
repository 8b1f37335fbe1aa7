#include "experiments/results/recover.hpp"

#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"

#include <algorithm>
#include <optional>

namespace moelab {

namespace {

namespace fs = std::filesystem;

// run.h5, where it is whole and has records of a curve that the journal lacks: a journal that was copied in
// part, say.
std::optional<RunSummary> fuller_snapshot(const fs::path& path, const RunData& journal) {
  if (!file_exists(path)) return std::nullopt;
  try {
    const ResultsFile file(path);
    const std::string& run = journal.info.name;
    const auto lacks = [&](const std::string& metric, std::size_t records) {
      const std::optional<Series> series = file.series(run, metric);
      return series && series->step.size() > records;
    };
    if (lacks("train/loss", journal.train.size()) || lacks("eval/loss", journal.eval.size()))
      return file.run(run);
  } catch (const DamagedFile&) {
    // It is about to be replaced.
  }
  return std::nullopt;
}

RecoveredRun recover_one(const fs::path& folder) {
  RecoveredRun result;
  result.folder = folder;
  try {
    const JournalWriter lock(folder / "metrics.jsonl");
    const RunData data = recover_run(folder);
    if (const std::optional<RunSummary> snapshot = fuller_snapshot(folder / "run.h5", data)) {
      result.kept = true;
      result.status = to_string(snapshot->status);
      result.last_step = static_cast<std::int64_t>(snapshot->steps);
      return result;
    }
    write_run_file(folder / "run.h5", data);
    result.status = to_string(data.status);
    if (!data.train.empty()) result.last_step = data.train.back().step;
    if (!data.eval.empty()) result.last_step = std::max(result.last_step, data.eval.back().step);
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

// What results.h5 said of the experiment, or what was written down when it began.
ExperimentInfo experiment_of(const RunStore& store) {
  try {
    if (file_exists(store.results_path())) return ResultsFile(store.results_path()).experiment();
  } catch (const DamagedFile&) {
    // It is about to be replaced.
  }
  return read_experiment(store);
}

}  // namespace

std::vector<RecoveredRun> recover(const fs::path& folder) {
  if (fs::exists(folder / "metrics.jsonl")) return {recover_one(folder)};
  require(fs::exists(folder / "experiment.yaml"),
          "[recover] {} has neither metrics.jsonl, as a run, nor experiment.yaml", folder.string());
  RunStore store = RunStore::open(folder);
  store.lock();
  std::vector<RecoveredRun> results;
  for (const std::string& run : store.runs())
    if (fs::exists(store.run_folder(run) / "metrics.jsonl"))
      results.push_back(recover_one(store.run_folder(run)));
  write_results_file(store.results_path(), experiment_of(store), store.run_files());
  return results;
}

}  // namespace moelab

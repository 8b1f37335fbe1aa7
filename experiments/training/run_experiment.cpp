#include "experiments/training/run_experiment.hpp"

#include "core/error.hpp"
#include "core/fields_writer.hpp"
#include "core/file.hpp"
#include "experiments/data/make_dataset.hpp"
#include "experiments/results/provenance.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/progress.hpp"
#include "experiments/training/run_one.hpp"

#include <chrono>
#include <map>
#include <memory>

namespace moelab {

namespace {

using Clock = std::chrono::steady_clock;

// Loads each data block once, for all runs that share it.
class DatasetCache {
 public:
  const Dataset& get(const DataConfig& config) {
    DataConfig key = config;
    std::unique_ptr<const Dataset>& entry = loaded_[yaml::emit(write_fields(key))];
    if (!entry) entry = make_dataset(config);
    return *entry;
  }

 private:
  std::map<std::string, std::unique_ptr<const Dataset>> loaded_;
};

// How much of all training is done, to tell how long the rest will take.
class Clockwork {
 public:
  explicit Clockwork(const std::vector<Run>& runs) {
    for (const Run& run : runs) total_ += tokens_of(run);
  }
  // A run that needs no training.
  void skip_run(const Run& run) { total_ -= tokens_of(run); }
  void end_run(const Run& run) { done_ += tokens_of(run); }
  double seconds_left(double tokens_of_run) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double trained = done_ + tokens_of_run;
    return trained > 0 ? seconds / trained * (total_ - trained) : kNotMeasured;
  }

 private:
  static double tokens_of(const Run& run) {
    return static_cast<double>(run.config.train.num_steps() * run.config.train.batch_tokens);
  }
  Clock::time_point start_ = Clock::now();
  double total_ = 0;
  double done_ = 0;
};

ProgressState state_of(const TrainerStatus& status) {
  ProgressState state;
  state.step = status.step;
  state.num_steps = status.num_steps;
  state.tokens = status.tokens;
  state.loss = status.loss;
  state.eval_loss = status.eval_loss;
  state.lr = status.lr;
  state.load_cv = status.load_cv;
  state.dead_fraction = status.dead_fraction;
  state.tokens_per_second = status.tokens_per_second;
  return state;
}

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

// Where relative paths in experiment.yaml start, for a later execution.
constexpr const char* kSourceFolder = "source_folder.txt";

RunStore open_store(const Experiment& experiment, const RunOptions& options) {
  if (!options.resume.empty()) return RunStore::open(options.resume);
  RunStore store =
      RunStore::create(options.output_root, experiment.name, experiment.source, experiment.overrides);
  replace_file(store.folder() / kSourceFolder,
               std::filesystem::absolute(experiment.file).parent_path().string());
  return store;
}

// Whether a run ended well: its snapshot says so.
bool is_done(const std::filesystem::path& folder) {
  const std::filesystem::path snapshot = folder / "run.h5";
  if (!std::filesystem::exists(snapshot)) return false;
  const ResultsFile file(snapshot);
  return file.runs().size() == 1 && file.runs().front().status == RunStatus::done;
}

}  // namespace

Experiment load_execution(const std::filesystem::path& folder, LoadOptions options) {
  const RunStore store = RunStore::open(folder);
  std::vector<std::string> overrides = store.overrides();
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  options.overrides = std::move(overrides);
  options.folder = read_file(store.folder() / kSourceFolder);
  return load_experiment(store.folder() / "experiment.yaml", options);
}

ExperimentOutcome run_experiment(const Experiment& experiment, const RunOptions& options) {
  Progress progress(options.quiet);
  DatasetCache datasets;
  for (const Run& run : experiment.runs)
    datasets.get(run.config.data);  // all must load before anything is written
  const RunStore store = open_store(experiment, options);
  progress.note(
      fmt::format("{} runs of {} -> {}", experiment.runs.size(), experiment.name, store.folder().string()));

  ExperimentOutcome outcome{store.folder(), store.results_path(), {}, false};
  Clockwork clockwork(experiment.runs);
  std::vector<std::filesystem::path> files;
  for (std::size_t i = 0; i < experiment.runs.size() && !outcome.interrupted; ++i) {
    const Run& run = experiment.runs[i];
    const std::filesystem::path folder = store.run_folder(run.name);
    const bool was_started = std::filesystem::exists(folder);
    if (!was_started) store.create_run(run.name, run.resolved_yaml);
    files.push_back(folder / "run.h5");
    if (was_started && is_done(folder)) {
      clockwork.skip_run(run);
      continue;
    }
    RunSetup setup{datasets.get(run.config.data), folder, {}, {}};
    if (run.point) setup.point = experiment.points[static_cast<std::size_t>(*run.point)];
    setup.provenance = collect_provenance(options.command_line, run.config.train.precision);
    setup.resume = was_started;
    setup.note = [&](const std::string& text) { progress.note(fmt::format("{}: {}", run.name, text)); };
    setup.hooks.stop_requested = options.stop_requested;
    setup.hooks.report = [&](const TrainerStatus& status, bool important) {
      ProgressState state = state_of(status);
      state.run = run.name;
      state.run_number = static_cast<std::int64_t>(i) + 1;
      state.num_runs = static_cast<std::int64_t>(experiment.runs.size());
      state.seconds_left = clockwork.seconds_left(static_cast<double>(status.tokens));
      progress.update(state, important);
    };
    const RunResult result = run_one(run, setup);
    if (result.status == RunStatus::failed || result.status == RunStatus::diverged) {
      outcome.failed.push_back({run.name, result.reason});
      progress.note(fmt::format("{}: {}: {}", run.name, to_string(result.status), result.reason));
    }
    outcome.interrupted = result.status == RunStatus::interrupted;
    clockwork.end_run(run);
    write_results_file(store.results_path(), info_of(experiment), files);
  }
  return outcome;
}

}  // namespace moelab

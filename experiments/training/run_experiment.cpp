#include "experiments/training/run_experiment.hpp"

#include "core/error.hpp"
#include "core/fields_writer.hpp"
#include "core/parallel.hpp"
#include "experiments/data/make_dataset.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/results/provenance.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/branch.hpp"
#include "experiments/training/open_execution.hpp"
#include "experiments/training/pace.hpp"
#include "experiments/training/progress.hpp"
#include "experiments/training/run_one.hpp"
#include "experiments/training/time_left.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>

namespace moelab {

namespace {

// Loads each data block once, for all runs that share it.
class DatasetCache {
 public:
  const Dataset& get(const DataConfig& config, const DataOptions& options = {}) {
    DataConfig key = config;
    std::unique_ptr<const Dataset>& entry = loaded_[yaml::emit(write_fields(key))];
    if (!entry) entry = make_dataset(config, options);
    return *entry;
  }

 private:
  std::map<std::string, std::unique_ptr<const Dataset>> loaded_;
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

// Runs by themselves; a trunk with its branches after it.
std::vector<std::vector<std::size_t>> tasks_of(const std::vector<Run>& runs) {
  std::vector<std::vector<std::size_t>> tasks;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].trunk.empty()) continue;
    std::vector<std::size_t>& task = tasks.emplace_back(1, i);
    for (std::size_t b = 0; b < runs.size(); ++b) {
      if (runs[b].trunk == runs[i].name) task.push_back(b);
    }
  }
  return tasks;
}

// One execution of an experiment: several jobs take runs from a list until it is empty.
class Execution {
 public:
  Execution(const Experiment& experiment, const RunOptions& options)
      : experiment_(experiment),
        options_(options),
        progress_(options.quiet),
        store_(options.resume.empty() ? (load_data(), create_store(experiment, options))
                                      : open_store(options.resume)),
        time_left_(experiment.runs),
        tasks_(tasks_of(experiment.runs)),
        ended_(experiment.runs.size(), false) {
    if (!options.resume.empty()) go_on();
    outcome_.folder = store_.folder();
    outcome_.results = store_.results_path();
  }

  ExperimentOutcome run() {
    const auto jobs = std::min(jobs_at_a_time(options_.jobs), static_cast<Index>(tasks_.size()));
    if (options_.jobs > parallel::threads()) {
      progress_.note(fmt::format("--jobs {}: a run needs a thread, and there are {}", options_.jobs,
                                 parallel::threads()));
    }
    progress_.note(fmt::format("{} runs of {}, {} at a time on {} threads -> {}", experiment_.runs.size(),
                               experiment_.name, jobs, parallel::threads(), store_.folder().string()));
    parallel::for_each(jobs, [this](Index) { work(); });
    finish_results();
    if (error_) std::rethrow_exception(error_);
    // A stop between two runs leaves no run that says so.
    if (std::ranges::find(ended_, false) != ended_.end()) outcome_.interrupted = true;
    return outcome_;
  }

 private:
  // All data must load before anything is written.
  void load_data() {
    const DataOptions options{options_.data_cache, [this](const std::string& text) { progress_.note(text); }};
    for (const Run& run : experiment_.runs) datasets_.get(run.config.data, options);
  }

  // An execution that is there already: what its runs have left, and what becomes of it now.
  void go_on() {
    load_data();
    require_same_data(store_, experiment_,
                      [this](const Run& run) -> const Dataset& { return datasets_.get(run.config.data); });
    const ExecutionRecord before = store_.record();
    require(before.overrides.size() <= experiment_.overrides.size() &&
                std::equal(before.overrides.begin(), before.overrides.end(), experiment_.overrides.begin()),
            "[run] {}: another process has gone on with it meanwhile", store_.folder().string());
    const ExecutionRecord now = record_of(experiment_, before);
    for (const std::string& name : now.runs) look_for_snapshot(name);
    if (now != before) store_.set_record(now);
    write_experiment_json(store_.info_path(), info_of(experiment_));
  }

  void look_for_snapshot(const std::string& name) {
    const auto status =
        status_in(store_.run_folder(name), [this](const std::string& text) { progress_.note(text); });
    if (status) snapshots_[name] = *status;
  }

  // Nothing may leave this function: an exception would cancel the loops of the other jobs.
  void work() noexcept {
    while (true) {
      const std::size_t task = next_++;
      if (task >= tasks_.size()) return;
      try {
        for (const std::size_t i : tasks_[task]) {
          if (options_.stop_requested()) return;
          attempt(i);
        }
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        return;
      }
    }
  }

  // What goes wrong with one run is told and leaves the others alone, but for a config that may not be run at
  // all.
  void attempt(std::size_t i) {
    try {
      execute(i);
    } catch (const ConfigError&) {
      throw;
    } catch (const std::exception& e) {
      const std::string& name = experiment_.runs[i].name;
      const std::lock_guard lock(mutex_);
      ended_[i] = true;
      time_left_.end(i);
      outcome_.failed.push_back({name, e.what()});
      progress_.note(fmt::format("{}: failed: {}", name, e.what()));
      look_for_snapshot(name);
    }
  }

  void execute(std::size_t i) {
    const Run& run = experiment_.runs[i];
    const std::filesystem::path folder = store_.run_folder(run.name);
    const bool was_started = std::filesystem::exists(folder);
    if (!was_started) store_.create_run(run.name, run.resolved_yaml);
    if (is_done(run.name)) {
      const std::lock_guard lock(mutex_);
      time_left_.begin(i, run.config.train.num_steps());
      time_left_.end(i);
      ended_[i] = true;
      return;
    }
    RunSetup setup = setup_of(i, folder);
    setup.resume = was_started;
    if (!run.trunk.empty()) {
      if (!begin_branch(run, folder, store_.run_folder(run.trunk))) {
        const std::lock_guard lock(mutex_);
        outcome_.failed.push_back(
            {run.name, fmt::format("{} did not come to step {}", run.trunk, run.trunk_step)});
        end(i);
        return;
      }
      setup.resume = true;
      setup.provenance.emplace_back("trunk", run.trunk);
      setup.provenance.emplace_back("trunk_step", fmt::format("{}", run.trunk_step));
    }
    {
      // Its old snapshot is about to be replaced.
      const std::lock_guard lock(mutex_);
      snapshots_.erase(run.name);
    }
    const RunResult result = run_one(run, setup);
    const std::lock_guard lock(mutex_);
    snapshots_[run.name] = result.status;
    if (result.status == RunStatus::failed || result.status == RunStatus::diverged) {
      outcome_.failed.push_back({run.name, result.reason});
      progress_.note(fmt::format("{}: {}: {}", run.name, to_string(result.status), result.reason));
    }
    if (result.status == RunStatus::interrupted) outcome_.interrupted = true;
    end(i);
  }

  RunSetup setup_of(std::size_t i, const std::filesystem::path& folder) {
    const Run& run = experiment_.runs[i];
    RunSetup setup{datasets_.get(run.config.data), folder, {}, {}};
    if (run.point) setup.point = experiment_.points[static_cast<std::size_t>(*run.point)];
    setup.provenance = collect_provenance(options_.command_line, run.config.train.precision);
    setup.note = [this, &run](const std::string& text) {
      const std::lock_guard lock(mutex_);
      progress_.note(fmt::format("{}: {}", run.name, text));
    };
    setup.begun = [this, i](std::int64_t steps) {
      const std::lock_guard lock(mutex_);
      time_left_.begin(i, steps);
    };
    setup.hooks.stop_requested = options_.stop_requested;
    setup.hooks.report = [this, &run, i](const TrainerStatus& status, bool important) {
      const std::lock_guard lock(mutex_);
      time_left_.update(i, status.step);
      ProgressState state = state_of(status);
      state.run = run.name;
      state.run_number = static_cast<std::int64_t>(i) + 1;
      state.num_runs = static_cast<std::int64_t>(experiment_.runs.size());
      state.seconds_left = time_left_.seconds();
      progress_.update(state, important);
    };
    return setup;
  }

  // Called under the lock. Each results file holds all runs so far, so it is not written after every one.
  void end(std::size_t i) {
    ended_[i] = true;
    time_left_.end(i);
    if (results_pace_.is_due(seconds())) write_results();
  }

  // When all jobs are through. An error of a job is told rather than one that follows from it.
  void finish_results() {
    try {
      write_results();
    } catch (...) {
      if (!error_) throw;
    }
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }

  bool is_done(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto snapshot = snapshots_.find(name);
    return snapshot != snapshots_.end() && snapshot->second == RunStatus::done;
  }

  // The results file of all runs that have ended, now or in an earlier execution, in the order of the
  // experiment.
  void write_results() {
    const double begin = seconds();
    std::vector<std::filesystem::path> files;
    for (const std::string& name : experiment_.run_names) {
      if (snapshots_.contains(name)) files.push_back(store_.run_folder(name) / "run.h5");
    }
    write_results_file(store_.results_path(), info_of(experiment_), files);
    results_pace_.took(begin, seconds());
  }

  const Experiment& experiment_;
  const RunOptions& options_;
  Progress progress_;
  DatasetCache datasets_;  // filled before jobs start, only read by them
  RunStore store_;
  std::mutex mutex_;  // guards everything below but tasks_, and progress_
  TimeLeft time_left_;
  const std::vector<std::vector<std::size_t>>
      tasks_;  // numbers of runs that a job executes one after another
  std::vector<bool> ended_;
  std::map<std::string, RunStatus>
      snapshots_;  // of runs of the execution that left one and are not trained now
  ExperimentOutcome outcome_;
  Pace results_pace_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::exception_ptr error_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace

Index jobs_at_a_time(Index wanted) {
  return wanted > 0 ? std::min<Index>(wanted, parallel::threads()) : parallel::threads();
}

ExperimentOutcome run_experiment(const Experiment& experiment, const RunOptions& options) {
  return Execution(experiment, options).run();
}

}  // namespace moelab

#include "experiments/training/run_experiment.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "experiments/data/dataset_cache.hpp"
#include "experiments/results/provenance.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/branch.hpp"
#include "experiments/training/execution_results.hpp"
#include "experiments/training/go_on.hpp"
#include "experiments/training/memory_needed.hpp"
#include "experiments/training/open_execution.hpp"
#include "experiments/training/progress.hpp"
#include "experiments/training/run_one.hpp"
#include "experiments/training/time_left.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>

namespace moelab {

namespace {

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
        datasets_({options.data_cache, [this](const std::string& text) { progress_.note(text); }}),
        store_(options.resume.empty() ? (load_data(), create_store(experiment, options))
                                      : open_store(options.resume)),
        results_(store_, experiment, [this](const std::string& text) { progress_.note(text); }),
        time_left_(experiment.runs),
        tasks_(tasks_of(experiment.runs)),
        ended_(experiment.runs.size(), false) {
    if (!options.resume.empty()) {
      load_data();
      go_on_with(store_, experiment, datasets_, results_);
    }
    to_train_ = store_.record().runs;
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
    outcome_.num_runs = to_train_.size();
    outcome_.num_done = static_cast<std::size_t>(
        std::ranges::count_if(to_train_, [this](const std::string& name) { return results_.is_done(name); }));
    return outcome_;
  }

 private:
  // All data must load before anything is written.
  void load_data() {
    for (const Run& run : experiment_.runs) datasets_.get(run.config.data);
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
    const std::string& name = experiment_.runs[i].name;
    try {
      execute(i);
    } catch (const ConfigError&) {
      const std::lock_guard lock(mutex_);
      results_.look_at(name);
      throw;
    } catch (const std::exception& e) {
      const std::lock_guard lock(mutex_);
      ended_[i] = true;
      time_left_.end(i);
      const std::string reason = reason_of(e, experiment_.runs[i].config);
      outcome_.failed.push_back({name, reason});
      progress_.note(fmt::format("{}: failed: {}", name, reason));
      results_.look_at(name);
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
      const bool goes_on = begin_branch(run, folder, store_.run_folder(run.trunk));
      if (!goes_on && !was_passed(run)) {
        const std::lock_guard lock(mutex_);
        outcome_.failed.push_back(
            {run.name, fmt::format("{} did not come to step {}", run.trunk, run.trunk_step)});
        end(i);
        return;
      }
      setup.resume |= goes_on;
      if (goes_on && is_from_trunk(folder)) {
        setup.provenance.emplace_back("trunk", run.trunk);
        setup.provenance.emplace_back("trunk_step", fmt::format("{}", run.trunk_step));
      }
    }
    {
      const std::lock_guard lock(mutex_);
      results_.begin(run.name);
    }
    const RunResult result = run_one(run, setup);
    const std::lock_guard lock(mutex_);
    results_.end(run.name, result.status);
    if (result.status == RunStatus::failed || result.status == RunStatus::diverged) {
      outcome_.failed.push_back({run.name, result.reason, result.status == RunStatus::diverged});
      progress_.note(fmt::format("{}: {}: {}", run.name, to_string(result.status), result.reason));
    }
    if (result.status == RunStatus::interrupted) outcome_.interrupted = true;
    end(i);
  }

  // Whether the trunk of a branch was beyond its step before it was asked to leave its state there. The
  // branch is trained from the start then, to the same end.
  bool was_passed(const Run& branch) {
    if (is_done(branch.trunk)) return true;
    const std::lock_guard lock(mutex_);
    const auto first = first_steps_.find(branch.trunk);
    return first != first_steps_.end() && first->second >= branch.trunk_step;
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
    if (const std::optional<InitConfig>& init = run.config.model.init) {
      const auto checksum = experiment_.initial_checksums.find(init->upcycle);
      if (checksum != experiment_.initial_checksums.end()) setup.initial_checksum = checksum->second;
    }
    setup.begun = [this, i, &run](std::int64_t steps) {
      const std::lock_guard lock(mutex_);
      time_left_.begin(i, steps);
      first_steps_[run.name] = steps;
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

  // Called under the lock.
  void end(std::size_t i) {
    ended_[i] = true;
    time_left_.end(i);
    results_.write_as_runs_end();
  }

  // When all jobs are through. An error of a job is told rather than one that follows from it.
  void finish_results() {
    try {
      results_.write();
    } catch (...) {
      if (!error_) throw;
    }
  }

  bool is_done(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return results_.is_done(name);
  }

  const Experiment& experiment_;
  const RunOptions& options_;
  Progress progress_;
  DatasetCache datasets_;  // filled before jobs start, only read by them
  RunStore store_;
  std::mutex mutex_;  // guards everything below but tasks_, and progress_
  ExecutionResults results_;
  TimeLeft time_left_;
  const std::vector<std::vector<std::size_t>>
      tasks_;                          // numbers of runs that a job executes one after another
  std::vector<std::string> to_train_;  // all runs of the execution, also of earlier processes
  std::vector<bool> ended_;
  std::map<std::string, std::int64_t> first_steps_;  // where runs went on, of those that are trained now
  ExperimentOutcome outcome_;
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

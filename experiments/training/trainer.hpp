// Trains one run: steps, evaluations, what is recorded of them.
#pragma once

#include "core/checkpoint.hpp"
#include "core/module.hpp"
#include "core/optim.hpp"
#include "core/schedule.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/evaluator.hpp"
#include "experiments/training/routing_monitor.hpp"

#include <functional>
#include <memory>
#include <string>

namespace moelab {

// What a trainer tells while it runs.
struct TrainerStatus {
  std::int64_t step = 0, num_steps = 0, tokens = 0;
  double loss = kNotMeasured;  // of the last step that was taken
  double eval_loss = kNotMeasured;
  double lr = 0;
  double load_cv = kNotMeasured;        // mean over mixture layers, of the last logged step
  double dead_fraction = kNotMeasured;  // the same
  double tokens_per_second = 0;
};

struct TrainerHooks {
  // Asked once a step; true ends the run after a snapshot.
  std::function<bool()> stop_requested = [] { return false; };
  // `important`: an evaluation was made or the run ended.
  std::function<void(const TrainerStatus&, bool important)> report = [](const TrainerStatus&, bool) {};
  // Something unusual, for the log and for people.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

class Trainer {
 public:
  // Allocates and initialises the model's parameters. All references must outlive the trainer. The recorder
  // was made for this run.
  Trainer(const Run& run, Model& model, const Dataset& data, Recorder& recorder, TrainerHooks hooks);

  // Goes on from a checkpoint of this run. Error where it is of another model or damaged.
  void restore(const CheckpointReader& checkpoint);

  // Trains to the end, or to a stop request: returns done or interrupted. Checkpoints as the config asks, at
  // a stop request, and, into branches/, where branches leave the run. Writes a snapshot at the start and at
  // each evaluation; the last one is for the caller, who knows how the run ended. NonFiniteError naming step
  // and tensor when a value is not finite; nothing of that step is recorded.
  RunStatus train();

  std::int64_t step() const { return step_; }
  ParameterStore& parameters() { return store_; }

 private:
  ForwardContext context() const;
  std::vector<Batch> next_batches() const;
  void count_step(const std::vector<Batch>& batches);
  void take_step();
  double gradient_norm();  // clips
  void skip_step(const std::string& why);
  void log_step(const struct StepResult& result, double lr, double norm, double seconds);
  void evaluate_now(bool is_final);
  void report(bool important);
  CheckpointFolder save_checkpoint_in(const char* name);
  void save_checkpoint_now();
  bool is_due(std::optional<Index> every_tokens) const;
  std::int64_t tokens() const { return step_ * run_.config.train.batch_tokens; }

  const Run& run_;
  Model& model_;
  const Dataset& data_;
  Recorder& recorder_;
  TrainerHooks hooks_;
  std::vector<moe::FfnBlock*> blocks_;  // mixtures only
  RoutingMonitor monitor_;
  std::vector<NamedState> states_;
  ParameterStore store_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  std::int64_t num_steps_ = 0;
  std::int64_t step_ = 0;     // optimizer steps taken
  double train_seconds_ = 0;  // evaluations left out
  int skipped_in_a_row_ = 0;
  TrainerStatus status_;
};

}  // namespace moelab

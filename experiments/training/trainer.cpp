#include "experiments/training/trainer.hpp"

#include "core/error.hpp"
#include "experiments/training/finite.hpp"
#include "experiments/training/make_optimizer.hpp"
#include "experiments/training/train_step.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

namespace moelab {

namespace {

// More would train nothing and hide it.
constexpr int kMaxSkippedInARow = 10;
constexpr const char* kSkipped = "skipped_in_a_row";  // in a checkpoint

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<moe::FfnBlock*> mixtures_of(Model& model) {
  std::vector<moe::FfnBlock*> blocks;
  for (moe::FfnBlock* block : model.ffn_blocks()) {
    if (block->num_experts() > 0) blocks.push_back(block);
  }
  return blocks;
}

std::int64_t num_tokens(const std::vector<moe::RoutingRecord>& records) {
  std::int64_t sum = 0;
  for (const moe::RoutingRecord& record : records) sum += record.num_tokens;
  return sum;
}

}  // namespace

Trainer::Trainer(const Run& run, Model& model, const Dataset& data, Recorder& recorder, TrainerHooks hooks)
    : run_(run),
      model_(model),
      data_(data),
      recorder_(recorder),
      hooks_(std::move(hooks)),
      blocks_(mixtures_of(model)),
      monitor_(model, data),
      states_(states(model)),
      store_(model, static_cast<std::uint64_t>(run.seed)),
      optimizer_(make_optimizer(run.config.train.optimizer, store_)),
      schedule_(make_schedule(run.config.train)),
      num_steps_(run.config.train.num_steps()) {
  status_.num_steps = num_steps_;
  require(run.config.train.batch_tokens % (data.seq_len() * run.config.train.num_micro_batches()) == 0,
          "[trainer] batch_tokens={} is not {} micro-batches of whole sequences of {}",
          run.config.train.batch_tokens, run.config.train.num_micro_batches(), data.seq_len());
}

void Trainer::restore(const CheckpointReader& checkpoint) {
  checkpoint.restore(model_);
  checkpoint.restore(*optimizer_);
  const hdf5::Group extra = checkpoint.extra();
  monitor_.restore(extra);
  if (const hdf5::Attribute* skipped = extra.find_attribute(kSkipped)) {
    skipped_in_a_row_ = static_cast<int>(std::get<std::int64_t>(skipped->value));
  }
  step_ = checkpoint.training().step;
  train_seconds_ = checkpoint.training().train_seconds;
  const RunData& before = recorder_.data();
  if (!before.eval.empty()) status_.eval_loss = before.eval.back().loss;
  if (before.train.empty()) return;
  status_.loss = before.train.back().loss;
  status_.lr = before.train.back().lr;
  status_.tokens_per_second = static_cast<double>(tokens()) / train_seconds_;
}

void Trainer::report(bool important) {
  status_.step = step_;
  status_.tokens = tokens();
  hooks_.report(status_, important);
}

RunStatus Trainer::train() {
  recorder_.write_snapshot();
  // A run that was killed between its last step and its end.
  if (step_ == num_steps_) evaluate_now(true);
  bool stopped = false;
  while (step_ < num_steps_ && !stopped) {
    take_step();
    const bool is_last = step_ == num_steps_;
    if (is_last || is_due(run_.config.eval.every_tokens)) evaluate_now(is_last);
    const auto& branches = run_.branch_steps;
    if (std::find(branches.begin(), branches.end(), step_) != branches.end()) save_checkpoint_in("branches");
    stopped = !is_last && hooks_.stop_requested();
    const auto& checkpoint = run_.config.train.checkpoint;
    if (stopped || (checkpoint && (is_last || is_due(checkpoint->every_tokens)))) save_checkpoint_now();
  }
  return step_ == num_steps_ ? RunStatus::done : RunStatus::interrupted;
}

CheckpointFolder Trainer::save_checkpoint_in(const char* name) {
  require_finite_state(model_, *optimizer_, step_);
  CheckpointFolder folder(recorder_.folder() / name);
  std::filesystem::create_directories(recorder_.folder() / name);
  hdf5::Group extra = monitor_.saved();
  extra.attribute(kSkipped, std::int64_t{skipped_in_a_row_});
  extra.attribute(kJournalRecords, recorder_.num_records());
  recorder_.sync();
  save_checkpoint(folder.path_of(step_), {step_, train_seconds_, run_.resolved_yaml}, model_, *optimizer_,
                  extra);
  return folder;
}

void Trainer::save_checkpoint_now() {
  const CheckpointFolder folder = save_checkpoint_in("checkpoints");
  const Index keep = run_.config.train.checkpoint ? run_.config.train.checkpoint->keep : 1;
  folder.prune(keep, best_evaluated_step(recorder_.data().eval, folder.steps()));
}

ForwardContext Trainer::context() const {
  ForwardContext context;
  context.precision =
      run_.config.train.precision == "bfloat16" ? gemm::Precision::bfloat16 : gemm::Precision::float32;
  context.seed = static_cast<std::uint64_t>(run_.seed);
  context.step = static_cast<std::uint64_t>(step_);
  return context;
}

std::vector<Batch> Trainer::next_batches() const {
  const Index micro_batches = run_.config.train.num_micro_batches();
  const Index sequences = run_.config.train.batch_tokens / data_.seq_len() / micro_batches;
  std::vector<Batch> batches;
  for (Index i = 0; i < micro_batches; ++i) {
    batches.push_back(data_.train_batch(static_cast<std::uint64_t>(run_.seed),
                                        (step_ * micro_batches + i) * sequences, sequences));
  }
  return batches;
}

void Trainer::count_step(const std::vector<Batch>& batches) {
  const bool needed = std::any_of(blocks_.begin(), blocks_.end(),
                                  [](const moe::FfnBlock* block) { return block->needs_step_counts(); });
  if (!needed || batches.size() == 1) return;
  ForwardContext counting = context();
  counting.training = true;
  counting.num_micro_batches = batches.size();
  std::vector<std::vector<moe::RoutingRecord>> records(blocks_.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    counting.micro_batch = i;
    ModelOutput output = checked_forward(model_, batches[i], counting);
    std::size_t layer = 0;
    for (moe::FfnOutput& ffn : output.ffn) {
      if (ffn.routing) records[layer++].push_back(std::move(*ffn.routing));
    }
  }
  for (std::size_t l = 0; l < blocks_.size(); ++l) {
    if (blocks_[l]->needs_step_counts()) blocks_[l]->before_step(expert_tokens(records[l]));
  }
}

double Trainer::gradient_norm() {
  const std::optional<double>& limit = run_.config.train.grad_clip;
  try {
    return limit ? clip_grad_norm(store_, *limit) : grad_norm(store_);
  } catch (const NonFiniteError& e) {
    throw NonFiniteError(fmt::format("step {}: {}", step_ + 1, e.what()));
  }
}

// Its tokens count as seen; weights, moments and what routers keep stay as they are.
void Trainer::skip_step(const std::string& why) {
  if (++skipped_in_a_row_ > kMaxSkippedInARow)
    throw NonFiniteError(fmt::format("{}; {} steps before it were skipped", why, kMaxSkippedInARow));
  hooks_.note("skipped: " + why);
  ++step_;
}

void Trainer::take_step() {
  const TrainConfig& config = run_.config.train;
  const auto start = Clock::now();
  const std::vector<Batch> batches = next_batches();
  store_.zero_grads();
  StepResult result;
  double norm = 0;
  try {
    count_step(batches);
    result = forward_backward(model_, batches, context());
    norm = gradient_norm();
  } catch (const NonFiniteError& e) {
    if (config.non_finite == "stop") throw;
    require_finite_state(model_, *optimizer_, step_ + 1);  // no later step would go better
    skip_step(e.what());
    train_seconds_ += seconds_since(start);
    return;
  }
  skipped_in_a_row_ = 0;
  const double lr = config.optimizer.lr * schedule_.factor(tokens());
  bool all_finite = optimizer_->step(lr);
  for (std::size_t l = 0; l < blocks_.size(); ++l) {
    blocks_[l]->after_step(expert_tokens(result.routing[l]), num_tokens(result.routing[l]));
  }
  all_finite = all_finite && states_are_finite(states_);
  if (!all_finite) require_finite_state(model_, *optimizer_, step_ + 1);
  ++step_;
  const double seconds = seconds_since(start);
  train_seconds_ += seconds;
  log_step(result, lr, norm, seconds);
}

void Trainer::log_step(const StepResult& result, double lr, double norm, double seconds) {
  status_.loss = result.task_loss;
  status_.lr = lr;
  status_.tokens_per_second = static_cast<double>(tokens()) / train_seconds_;

  const bool is_last = step_ == num_steps_;
  const LogConfig& log = run_.config.log;
  if (step_ == 1 || is_last || step_ % log.every_steps == 0) {
    TrainRecord record;
    record.step = step_;
    record.tokens = tokens();
    record.time = train_seconds_;
    record.loss = result.task_loss;
    record.auxiliary_losses = result.auxiliary_losses;
    record.lr = lr;
    record.grad_norm = norm;
    record.step_seconds = seconds;
    record.tokens_per_second = static_cast<double>(run_.config.train.batch_tokens) / seconds;
    record.active_compute_ratio = monitor_.active_compute_ratio(result.routing);
    recorder_.record_train(record);
  }
  if (!blocks_.empty() && (step_ == 1 || is_last || step_ % log.routing_every_steps == 0)) {
    const RoutingRecordRow row{step_, tokens(), monitor_.layers(result.routing)};
    status_.load_cv = 0;
    status_.dead_fraction = 0;
    for (const LayerRouting& layer : row.layers) {
      status_.load_cv += layer.load_cv / static_cast<double>(row.layers.size());
      status_.dead_fraction += layer.dead_fraction / static_cast<double>(row.layers.size());
    }
    recorder_.record_routing(row);
  }
  report(false);
}

void Trainer::evaluate_now(bool is_final) {
  require_finite_state(model_, *optimizer_, step_);
  EvaluationPlan plan;
  plan.batch_sequences = std::max<Index>(
      1, run_.config.train.batch_tokens / run_.config.train.num_micro_batches() / data_.seq_len());
  plan.max_tokens = run_.config.eval.max_tokens;
  const Evaluation evaluation =
      evaluate(model_, data_, plan, context(), monitor_.evaluation_observer(step_, is_final));
  if (!std::isfinite(evaluation.loss)) {
    throw NonFiniteError(fmt::format("step {}: the evaluation loss is not finite", step_));
  }
  const auto& recorded = recorder_.data().eval;
  const bool is_recorded = !recorded.empty() && recorded.back().step == step_;
  EvalRecord record;
  record.step = step_;
  record.tokens = tokens();
  record.time = train_seconds_;
  record.loss = evaluation.loss;
  if (data_.vocab_size() > 0) {
    record.bits_per_byte = evaluation.loss / std::numbers::ln2 / evaluation.bytes_per_token;
  }
  record.accuracy = evaluation.accuracy;
  record.loss_by_domain = evaluation.loss_by_domain;
  if (!is_recorded) recorder_.record_eval(record);
  if (is_final) {
    recorder_.set_evaluation_statistics(monitor_.evaluation_statistics());
    recorder_.set_routing_samples(monitor_.samples(run_.config.log.sample_tokens));
  }
  status_.eval_loss = evaluation.loss;
  report(true);
  if (!is_final) recorder_.write_snapshot();
}

bool Trainer::is_due(std::optional<Index> every_tokens) const {
  if (!every_tokens) return false;
  const std::int64_t before = tokens() - run_.config.train.batch_tokens;
  return tokens() / *every_tokens > before / *every_tokens;
}

}  // namespace moelab

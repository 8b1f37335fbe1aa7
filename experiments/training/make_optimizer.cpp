#include "experiments/training/make_optimizer.hpp"

#include <string>

namespace moelab {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, ParameterStore& store) {
  if (config.kind == "sgd") return make_sgd(store, {config.momentum, config.weight_decay});
  return make_adamw(store, {config.betas[0], config.betas[1], config.eps, config.weight_decay});
}

Schedule make_schedule(const TrainConfig& config) {
  Schedule schedule;
  const std::string& kind = config.schedule.kind;
  schedule.kind = kind == "linear"     ? Schedule::Kind::linear
                  : kind == "constant" ? Schedule::Kind::constant
                  : kind == "wsd"      ? Schedule::Kind::wsd
                                       : Schedule::Kind::cosine;
  schedule.max_tokens = config.num_steps() * config.batch_tokens;
  schedule.warmup_tokens = config.schedule.warmup_tokens;
  schedule.min_lr_ratio = config.schedule.min_lr_ratio;
  schedule.decay_tokens = config.schedule.decay_tokens;
  return schedule;
}

}  // namespace moelab

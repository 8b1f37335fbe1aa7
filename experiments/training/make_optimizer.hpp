// The optimizer and the course of its learning rate, as an experiment says.
#pragma once

#include "core/optim.hpp"
#include "core/schedule.hpp"
#include "experiments/config/train_config.hpp"

#include <memory>

namespace moelab {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, ParameterStore& store);

// Over all of a run's tokens.
Schedule make_schedule(const TrainConfig& config);

}  // namespace moelab

// One optimizer step's forward and backward passes over its micro-batches.
#pragma once

#include "core/context.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"

#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct StepResult {
  double task_loss = 0;  // mean over the micro-batches
  // By name, without weights: mean over the layers that have the loss and over the micro-batches.
  std::vector<std::pair<std::string, double>> auxiliary_losses;
  // Of each mixture layer, the record of each micro-batch.
  std::vector<std::vector<moe::RoutingRecord>> routing;
};

// total = task loss + for each auxiliary loss the mean over its layers of weight * value (maths, "Losses").
// The gradient of the mean over micro-batches is added to the parameters' gradients.
// NonFiniteError naming step and tensor when a loss is not finite; gradients are of no use then.
StepResult forward_backward(Model& model, const std::vector<Batch>& micro_batches, ForwardContext context);

// Chosen tokens per expert of one layer, before drops, summed over its records.
std::vector<std::int64_t> expert_tokens(const std::vector<moe::RoutingRecord>& records);

}  // namespace moelab

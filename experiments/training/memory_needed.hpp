// The memory that a run needs, before it is taken and where it cannot be had.
#pragma once

#include "experiments/accounting/accounting.hpp"
#include "experiments/config/experiment.hpp"

#include <exception>
#include <string>

namespace moelab {

// Weights, gradients and moments, and a rough figure for the activations of one micro-batch: 24 rows of
// d_model floats for each token and layer, the logits twice. And what is recorded of the routing. In bytes.
double memory_needed(const RunConfig& config);
// The same, where the model has been counted.
double memory_needed(const RunConfig& config, const Accounting& accounting);

// What an error says that ended a run; of memory that could not be had, how much there is and how much the
// run needs.
std::string reason_of(const std::exception& error, const RunConfig& config);

}  // namespace moelab

// The loss on held-out data, overall and by domain.
#pragma once

#include "core/context.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"
#include "experiments/results/run_data.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace moelab {

struct EvaluationPlan {
  Index batch_sequences = 1;        // sequences in one forward pass
  std::optional<Index> max_tokens;  // absent: all held-out data
};

struct Evaluation {
  double loss = 0;  // mean over counted targets
  std::int64_t num_counted = 0;
  double bytes_per_token = 1;          // of the targets; see Dataset::token_bytes
  double accuracy = kNotMeasured;      // share of the sequences whose class is right; classification only
  std::vector<double> loss_by_domain;  // NaN for a domain that no counted target belongs to
};

// Called with each evaluated batch and what the model gave for it.
using EvaluationObserver = std::function<void(const Batch& batch, const ModelOutput& output)>;

// Runs the model without training behaviour and without recording a tape. Changes no state. NonFiniteError
// naming context.step where a counted target's loss is not finite: a mean over the others would hide it.
// What draws numbers in evaluation too (the random router, `drop: random`) draws them by context.seed,
// context.step and the number of the batch, so it depends on plan.batch_sequences.
Evaluation evaluate(Model& model, const Dataset& data, const EvaluationPlan& plan, ForwardContext context,
                    const EvaluationObserver& observer = {});

}  // namespace moelab

// The kinds of cases: each runs the library on a case's inputs and weights and hands everything it computed
// to the comparison.
#pragma once

#include "tests/oracle/comparison.hpp"

#include <string>
#include <vector>

namespace moelab::oracle {

using RunKind = void (*)(const Case& c, Comparison& comparison);

struct Kind {
  const char* name;
  RunKind run;
};

// Layers: ffn, layer_norm, rms_norm, cross_entropy, tied_embedding, attention.
extern const std::vector<Kind> kLayerKinds;
// Optimizers and the like: adamw, sgd, clip, schedule.
extern const std::vector<Kind> kTrainingKinds;
// Mixtures: router, loss, capacity, moe, expert_bias_update, capacity_formula.
extern const std::vector<Kind> kMixtureKinds;
// Models: block, encoder_tutorial, parameter_table.
extern const std::vector<Kind> kModelKinds;
extern const std::vector<Kind> kTrajectoryKinds;

// Error for a kind that is not known.
void run_case(const Case& c, Comparison& comparison);

}  // namespace moelab::oracle

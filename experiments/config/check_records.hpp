// What the runs of an experiment will record, looked at before hours of training.
#pragma once

#include "core/diagnostics.hpp"
#include "core/yaml.hpp"
#include "experiments/config/experiment.hpp"

namespace moelab {

// Error where no run records the metric that variants are compared by: the comparison would find no value.
// `root` is the tree of the file.
void check_metric(const Experiment& experiment, const yaml::Node& root, Diagnostics& told);

// Warns of runs whose results will have no co-activation, as they have too many experts.
void warn_of_pairs(const Experiment& experiment, const yaml::Node& root, Diagnostics& told);

}  // namespace moelab

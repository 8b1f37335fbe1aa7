// A part of the runs of an experiment.
#pragma once

#include "experiments/config/experiment.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moelab {

// What is empty selects everything.
struct RunSelection {
  std::vector<std::string> variants;
  std::vector<std::int64_t> seeds;
  std::vector<Index> points;
  bool is_everything() const { return variants.empty() && seeds.empty() && points.empty(); }
};

// Keeps the selected runs; seeds and variants of the experiment shrink with them, points keep their numbers.
// ConfigError for a name or number that the experiment does not have, and where nothing is left.
void select_runs(Experiment& experiment, const RunSelection& selection);

// The same for the runs that `keeps` is true of; at least one.
void keep_runs(Experiment& experiment, const std::function<bool(const Run&)>& keeps);

}  // namespace moelab

// Overrides that something else overrides in turn.
#pragma once

#include "experiments/config/experiment.hpp"

#include <string>
#include <vector>

namespace moelab {

// A sentence for each override of `options` that changes no run, since in each the sweep or the variant sets
// its key too: they are applied after it. `all` is what the file gives with these options, all of its runs.
std::vector<std::string> overrides_without_effect(const Experiment& all, const LoadOptions& options);

}  // namespace moelab

// Whether an execution that is gone on with would read the data that it was begun on.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/results/run_store.hpp"

#include <functional>

namespace moelab {

// ConfigError where a run of the folder, one that is not selected too, was begun on other data than its data
// block gives now: runs on different data would stand in one comparison. Where no selected run has its data
// block, the domains count that share a source file with a selected run.
void require_same_data(const RunStore& store, const Experiment& experiment,
                       const std::function<const Dataset&(const DataConfig&)>& data_of);

}  // namespace moelab

// An execution that is there already is gone on with.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/data/dataset_cache.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/execution_results.hpp"

namespace moelab {

// Looks at what runs have left (`results` learns how they ended), and writes down what the execution is from
// now on. Error before anything is written where the data are others, something cannot be read now, or a run
// that is not done cannot go on. The data must be loaded.
void go_on_with(RunStore& store, const Experiment& experiment, DatasetCache& datasets,
                ExecutionResults& results);

}  // namespace moelab

// experiment.json: what was asked, written when an execution begins, so that results.h5 can be made again.
#pragma once

#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"

#include <filesystem>

namespace moelab {

// Leaves out the experiment file and the overrides, which stand beside it.
void write_experiment_json(const std::filesystem::path& path, const ExperimentInfo& info);
// Error naming the file and what is missing in it.
ExperimentInfo read_experiment_json(const std::filesystem::path& path);
// With the experiment file and the overrides that stand beside it. Error where one of them is missing or
// damaged.
ExperimentInfo read_experiment(const RunStore& store);

}  // namespace moelab

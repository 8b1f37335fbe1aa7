// The folder of an execution: made for a new one, opened to go on with.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_data.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/run_experiment.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace moelab {

// What results files say of the experiment.
ExperimentInfo info_of(const Experiment& experiment);

// `before` with what this execution brings.
ExecutionRecord record_of(const Experiment& experiment, const ExecutionRecord& before);

RunStore create_store(const Experiment& experiment, const RunOptions& options);
// Locked. Error where another process works in it.
RunStore open_store(const std::filesystem::path& folder);

// How a run ended, or that it has not: its snapshot says so. Nothing where there is none. One that is damaged
// is told of, and the run goes on from its checkpoint and its journal; Error for one that cannot be read now.
std::optional<RunStatus> status_in(const std::filesystem::path& folder,
                                   const std::function<void(const std::string&)>& note);

}  // namespace moelab

// The experiment of an execution that is to be gone on with.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/config/select_runs.hpp"

#include <filesystem>

namespace moelab {

// Its file as it was read at the start, with the overrides that it has had; `options.overrides` come on top
// of them. Its runs are those that the execution had, and those that the selection or the new overrides name
// besides. ConfigError where runs of it are gone, where it has new ones without being told, or where a run
// that it has begun would now be another one (differences_against_resume, differences_against_done).
Experiment load_execution(const std::filesystem::path& folder, LoadOptions options,
                          const RunSelection& selection = {});

}  // namespace moelab

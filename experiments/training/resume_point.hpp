// Where a run that was begun goes on.
#pragma once

#include "core/checkpoint.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/results/run_data.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace moelab {

struct ResumePoint {
  std::optional<CheckpointReader> checkpoint;  // none: the start
  std::vector<std::filesystem::path> passed_over;
};

// The newest checkpoint in the run's folder that is whole and whose records the journal holds, so that no
// part of the curves is missing. Newer ones are told of and passed over; a line of the journal that is not a
// record counts as its end. `info` is of the run. Nothing is changed.
// ConfigError where the config has changed since that checkpoint, or a newer whole one, in what may not
// change; Error where a file that may be whole cannot be read now.
ResumePoint find_resume_point(const Run& run, const std::filesystem::path& folder, const RunInfo& info,
                              const std::function<void(const std::string&)>& note);

// Renames what was passed over to <name>.passed_over: it is the newest checkpoint no more, pushes out none
// that the run will write, and is not overwritten by one.
void set_aside(const std::vector<std::filesystem::path>& checkpoints,
               const std::function<void(const std::string&)>& note);

}  // namespace moelab

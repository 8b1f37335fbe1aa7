// Where a branch of a longer run begins.
#pragma once

#include "experiments/config/experiment.hpp"

#include <filesystem>

namespace moelab {

// Gives the folder of a branch, which exists, what the trunk has left for it: the journal up to now and the
// checkpoint of the step where they part. Then the branch goes on like a run that was interrupted there.
// Nothing is done where the branch has been begun already. Returns whether there is anything to go on from;
// not where the trunk has left nothing.
bool begin_branch(const Run& branch, const std::filesystem::path& folder, const std::filesystem::path& trunk);

// Whether a branch with something to go on from has it from its trunk. Not where it was begun at the start,
// as run.json tells.
bool is_from_trunk(const std::filesystem::path& folder);

}  // namespace moelab

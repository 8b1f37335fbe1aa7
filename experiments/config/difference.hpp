// What two resolved runs differ in.
#pragma once

#include "experiments/data/data_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

// The differences of two resolved configs (Run::resolved_yaml) that a run may not have when it goes on after
// `step` steps, one line a field: "train.optimizer.lr: 0.001 -> 0.01". A field that only one of them has
// counts as absent in the other. Free to change: logging, evaluation, checkpoints, and how long training
// lasts where the schedule of the steps taken does not depend on it (constant; wsd before the decay of either
// length). The new length may not be behind it.
std::vector<std::string> differences_against_resume(const std::string& before, const std::string& after,
                                                    std::int64_t step);

// The differences that a run may not have which is done, so that others can be compared with it. Free:
// logging, checkpoints and how often it is evaluated.
std::vector<std::string> differences_against_done(const std::string& before, const std::string& after);

// Parts of a resolved config; Error where it is of another version. How many steps the run has:
std::int64_t steps_of_resolved(const std::string& resolved);
DataConfig data_of_resolved(const std::string& resolved);

// What stands under a key of a resolved config, as text that is the same where it is the same. Error where
// the config has no such key.
std::string part_of_resolved(const std::string& resolved, const std::string& key);

}  // namespace moelab

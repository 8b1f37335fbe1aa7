// What two resolved runs differ in.
#pragma once

#include <string>
#include <vector>

namespace moelab {

// One line a field of two resolved configs (Run::resolved_yaml): "train.optimizer.lr: 0.001 -> 0.01". A field
// that only one of them has counts as absent in the other.
std::vector<std::string> config_differences(const std::string& before, const std::string& after);

// The differences that a run may not have when it goes on from a checkpoint. Free to change: logging,
// evaluation, checkpoints, and how long training lasts where the schedule of the steps taken does not depend
// on it (constant, wsd).
std::vector<std::string> differences_against_resume(const std::string& before, const std::string& after);

}  // namespace moelab

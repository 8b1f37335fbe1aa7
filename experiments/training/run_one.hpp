// One run from its config to its folder of results.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/training/trainer.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct RunResult {
  RunStatus status = RunStatus::failed;
  std::string reason;  // why it failed or diverged
};

// Trains the run, at that point of the sweep (empty: no sweep), in `folder`, which exists and holds no run
// yet, and leaves its last snapshot there. An error of the run itself becomes its status and reason, in the
// snapshot too.
RunResult run_one(const Run& run, const SweepPoint& point, const Dataset& data,
                  const std::filesystem::path& folder,
                  const std::vector<std::pair<std::string, std::string>>& provenance,
                  const TrainerHooks& hooks);

}  // namespace moelab

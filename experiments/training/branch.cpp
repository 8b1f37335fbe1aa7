#include "experiments/training/branch.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/results/run_info_json.hpp"
#include "experiments/training/checkpoint_folder.hpp"

#include <algorithm>

namespace moelab {

bool begin_branch(const Run& branch, const std::filesystem::path& folder,
                  const std::filesystem::path& trunk) {
  const CheckpointFolder checkpoints(folder / "checkpoints");
  if (!checkpoints.steps().empty()) return true;
  const std::filesystem::path left = CheckpointFolder(trunk / "branches").path_of(branch.trunk_step);
  // It was begun before, and none of its checkpoints was good: it goes on from the start.
  if (!std::filesystem::exists(left)) return std::filesystem::exists(folder / "metrics.jsonl");
  // The checkpoint last: once it is there, all is.
  replace_file(folder / "metrics.jsonl", read_file(trunk / "metrics.jsonl"));
  std::filesystem::create_directories(folder / "checkpoints");
  std::filesystem::rename(left, checkpoints.path_of(branch.trunk_step));
  return true;
}

bool is_from_trunk(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "run.json")) return true;
  try {
    const RunInfo info = read_run_info(folder / "run.json");
    return std::ranges::any_of(info.provenance, [](const auto& entry) { return entry.first == "trunk"; });
  } catch (const Error&) {
    return true;  // most are; the run writes it anew
  }
}

}  // namespace moelab

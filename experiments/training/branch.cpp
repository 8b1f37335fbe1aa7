#include "experiments/training/branch.hpp"

#include "core/file.hpp"
#include "experiments/training/checkpoint_folder.hpp"

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

}  // namespace moelab

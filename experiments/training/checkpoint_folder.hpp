// The checkpoints of one run: step_<n>.h5.
#pragma once

#include "core/tensor.hpp"
#include "experiments/results/run_data.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace moelab {

// What CheckpointReader::extra() says of the run besides: the records that its journal held.
inline constexpr const char* kJournalRecords = "journal_records";

class CheckpointFolder {
 public:
  // The folder may not exist yet.
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path path_of(std::int64_t step) const;
  // Steps that there are checkpoints of, falling. Other files are left alone.
  std::vector<std::int64_t> steps() const;
  // Removes all but the newest `keep` and the one of step `best`.
  void prune(Index keep, std::optional<std::int64_t> best) const;

 private:
  std::filesystem::path folder_;
};

// The file itself; of a folder of checkpoints, or of a run that has one, the newest checkpoint. Error where
// there is none.
std::filesystem::path checkpoint_at(const std::filesystem::path& path);

// Of the steps, the one with the lowest evaluation loss; nothing where none was evaluated.
std::optional<std::int64_t> best_evaluated_step(const std::vector<EvalRecord>& evaluations,
                                                const std::vector<std::int64_t>& steps);

}  // namespace moelab

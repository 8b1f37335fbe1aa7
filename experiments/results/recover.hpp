// After a kill: run.h5 from what the journal holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

struct RecoveredRun {
  std::filesystem::path folder;
  std::string status;          // done, interrupted, ...
  std::int64_t last_step = 0;  // of any record
  bool kept = false;           // run.h5 holds more than the journal, and was left as it is
  std::string error;           // why it could not be recovered; empty: it was
};

// Rewrites run.h5 of the run in the folder, unless it is whole and holds records that the journal lacks, or
// of each run of the experiment in it and then its results.h5. Error if the folder is neither, and for an
// experiment whose runs another process trains. A run that another process writes is left alone, with that as
// error.
std::vector<RecoveredRun> recover(const std::filesystem::path& folder);

}  // namespace moelab

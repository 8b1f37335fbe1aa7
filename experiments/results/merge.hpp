// One results file of the runs of several.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

struct MergeOptions {
  std::string baseline;  // a variant; empty: what the experiment says
  std::string metric;    // a series of at least one run; empty: the same
};

// Writes the runs of run.h5 and results.h5 files of one experiment into `output`, in the order of the files;
// run.h5 files that lie in the folder of one execution are put in the order of its experiment file. The
// experiment is that of the first file that says one, or, where none does, that of the executions that all
// the run.h5 files lie in, if it is the same. Error where files are of several experiments, where a run comes
// twice, and listing the variants where the baseline is none of them; ConfigError, listing the metrics, where
// no run has the one that is asked for. Nothing is written then.
void merge_results(const std::vector<std::filesystem::path>& files, const std::filesystem::path& output,
                   const MergeOptions& options = {});

}  // namespace moelab

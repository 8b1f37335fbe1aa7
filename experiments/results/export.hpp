// Results in the formats of other tools.
#pragma once

#include "experiments/results/results_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

// Every scalar series of a run, with the names of the journal: train/loss, eval/loss/<domain>,
// moe/layer_<layer>/load_cv, ...
struct NamedSeries {
  std::string name;
  Series series;
};
std::vector<NamedSeries> all_series(const ResultsFile& file, const std::string& run);

// summary.csv, and <run>.csv in long form: step, tokens, name, value. Empty where a value is missing.
void export_csv(const ResultsFile& file, const std::filesystem::path& folder);

// summary.jsonl, and <run>.jsonl: one object a step with all that was recorded at it, under the keys of the
// journal but for `time`, which is train/time and eval/time here. null where a value is missing.
void export_jsonl(const ResultsFile& file, const std::filesystem::path& folder);

// <run>/events.out.tfevents.0.moelab: scalars over steps, instead of those of an earlier export. Values that
// are missing are left out. The wall time of a point is that of the file plus the training time.
void export_tensorboard(const ResultsFile& file, const std::filesystem::path& folder);

}  // namespace moelab

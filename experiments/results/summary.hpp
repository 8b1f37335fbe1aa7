// One row of figures a run, and the table of them in a file (/summary).
#pragma once

#include "core/hdf5.hpp"
#include "experiments/results/run_data.hpp"

#include <span>
#include <string>
#include <vector>

namespace moelab {

// NaN where it is not known.
struct RunSummary {
  std::string run;
  std::string variant;
  std::int64_t seed = 0;
  std::string sweep_point = "{}";
  RunStatus status = RunStatus::running;
  double eval_loss_final = kNotMeasured;  // nat a target
  double eval_loss_best = kNotMeasured;
  double bits_per_byte_final = kNotMeasured;
  double accuracy_final = kNotMeasured;  // of classification
  double train_loss_final = kNotMeasured;
  double steps = kNotMeasured;
  double tokens = kNotMeasured;
  double params_total = kNotMeasured;
  double params_active = kNotMeasured;
  double flops_forward_per_token = kNotMeasured;
  double train_flops = kNotMeasured;
  double active_compute_ratio = kNotMeasured;           // planned
  double active_compute_ratio_measured = kNotMeasured;  // mean over the logged steps
  double wall_seconds = kNotMeasured;
  double tokens_per_second = kNotMeasured;
  double peak_rss_bytes = kNotMeasured;
};

// For each run its variant, with the sweep point where there is one: "moe lr=1e-3 experts.d_ff=16". Of a key
// there is as much as tells it from the other keys of these runs. Runs have the same label only where variant
// and sweep point are the same.
std::vector<std::string> labels_of(std::span<const RunSummary> runs);

// The figures of a summary, each with the name that it has in files.
struct SummaryField {
  const char* name;
  const char* units;
  const char* long_name;
  double RunSummary::*member;
};
const std::vector<SummaryField>& summary_fields();

RunSummary summarise(const RunData& data);

hdf5::Group summary_group(std::span<const RunSummary> summaries);
std::vector<RunSummary> read_summaries(const hdf5::Reader& reader);

}  // namespace moelab

// Variants against a baseline, over seeds. Differences are paired: run by run with the same seed.
#pragma once

#include "experiments/compare/statistics.hpp"
#include "experiments/results/summary.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace moelab {

struct SeedValue {
  std::string run;
  std::int64_t seed = 0;
  double value = kNotMeasured;  // of the metric
};

// A difference to the baseline: variant minus baseline, of the seeds that both have.
struct Delta {
  std::size_t num_seeds = 0;
  double mean = kNotMeasured;
  double standard_deviation = kNotMeasured;
  Interval t{kNotMeasured, kNotMeasured};
  Interval bootstrap{kNotMeasured, kNotMeasured};
  double p_value = kNotMeasured;
  double p_value_holm = kNotMeasured;  // corrected for the number of variants that are compared
};

// A ratio over the seeds that have one, e.g. of the compute that two variants need for the same loss.
struct Ratio {
  std::vector<double> values;  // one a seed
  std::size_t num_not_reached = 0;
  double mean = kNotMeasured;              // geometric
  Interval t{kNotMeasured, kNotMeasured};  // of the mean logarithm, turned back
};

struct VariantResult {
  std::string label;  // variant, and the sweep point where there is one
  std::string variant;
  std::string sweep_point;
  bool is_mixture = false;         // has layers with experts
  std::vector<SeedValue> seeds;    // with a value of the metric, by seed
  std::size_t num_incomplete = 0;  // runs without one, or that did not end well
  double mean = kNotMeasured;
  double standard_deviation = kNotMeasured;
  Interval t{kNotMeasured, kNotMeasured};
  Delta delta;                          // of the baseline itself: nothing
  std::vector<std::string> other_data;  // see other_data(), against the baseline
  // Means over the runs.
  double params_total = kNotMeasured, params_active = kNotMeasured;
  double flops_forward_per_token = kNotMeasured;
  double relative_compute = kNotMeasured;  // forward FLOPs per token / those of the baseline
  double active_compute_ratio = kNotMeasured, active_compute_ratio_measured = kNotMeasured;
  double tokens_per_second = kNotMeasured, wall_seconds = kNotMeasured;
  Ratio compute_efficiency;     // training FLOPs of the baseline / of the variant at equal loss
  Ratio wall_clock_efficiency;  // the same of training time
  // Of a mixture: parameters that a dense model needs for the loss of this variant / those of this variant.
  Ratio active_parameter_efficiency, total_parameter_efficiency;
};

struct Comparison {
  std::string metric;
  std::string at;  // in words: where on the curves the metric was taken
  double confidence = 0.95;
  std::size_t baseline = 0;  // index in variants; of a sweep, the first point of the baseline
  bool same_point = true;    // false: all are compared with `baseline` itself, which was named with its point
  std::vector<VariantResult> variants;
};

// Groups the runs by variant and sweep point in the order in which they come. `value_of` gives the metric of
// a run, NaN where it has none. `baseline` is a variant, whose points are each compared with their own (see
// same_point), or a label, with which all are compared; empty: the first variant. Error listing the labels
// when there is none such, or no run at all.
Comparison compare_runs(std::span<const RunSummary> runs,
                        const std::function<double(const RunSummary&)>& value_of, const std::string& baseline,
                        double confidence);

// What a variant is compared with: of a sweep, the baseline at the point of the same settings. Null where
// there is none, and so no difference; the baseline is its own.
const VariantResult* baseline_of(const VariantResult& variant, const Comparison& comparison);

// Labels of variants that are compared with nothing.
std::vector<std::string> without_baseline(const Comparison& comparison);

// The label of what all are compared with, or the variant where each has its own point of it.
std::string baseline_name(const Comparison& comparison);

// The differences, for files of results (/variants).
hdf5::Group variants_group(const Comparison& comparison);

}  // namespace moelab

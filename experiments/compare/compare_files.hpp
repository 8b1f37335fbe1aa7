// A comparison from results files: which metric, where on the curves, and what an equal loss costs.
#pragma once

#include "experiments/compare/comparison.hpp"
#include "experiments/results/results_file.hpp"

#include <optional>
#include <span>
#include <string>

namespace moelab {

// Where on its curve a metric is read.
struct At {
  enum class Kind { final, best, tokens, flops } kind = Kind::final;
  double value = 0;  // tokens or training FLOPs
};
// From "final", "best", "tokens=1e6" or "flops=1e13". Throws ConfigError.
At parse_at(const std::string& text);

struct CompareOptions {
  std::string baseline;  // empty: what the first file says, or its first variant
  std::string metric;    // empty: what the first file says
  At at;
  std::optional<double> confidence;  // absent: what the first file says
  bool efficiency = true;            // of compute, time and parameters
};

// All runs of all files. Where two files have a variant of the same name, it is called <file>:<variant>. Runs
// that failed before they had a value of the metric count as incomplete, also where all did. Error where
// there are no runs, or where a metric that the caller names is in none of the runs that were evaluated.
Comparison compare_files(std::span<const ResultsFile> files, const CompareOptions& options);

// The largest training FLOPs that every run with the metric which ended has reached. NaN where there is none.
double common_flops(const ResultsFile& file, const std::string& metric);

// The comparison that `moelab run` prints when an experiment has ended.
Comparison compare_file(const ResultsFile& file);

}  // namespace moelab

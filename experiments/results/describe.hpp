// What is in a results file, or in a folder of them, for a person in a terminal.
#pragma once

#include "experiments/compare/text_table.hpp"
#include "experiments/results/results_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

// The results.h5 below a folder, and each run.h5 that is not part of one, sorted; links are not followed. A
// file is its own list. Error if there is no such file or folder.
std::vector<std::filesystem::path> find_results(const std::filesystem::path& where);

// A line a file: experiment, runs that are done of those that it is to train, and of the metric that it
// compares the means of its variants, the first and what else fits into `width` columns. Files that cannot be
// read are listed with the reason.
std::string list_results(const std::filesystem::path& where, std::size_t width);

// The experiment, its runs, and how their routing fares. Tables are laid out for this many columns.
std::string describe_file(const ResultsFile& file, std::size_t columns = kAnyWidth);

// One run in detail: figures, layers, accounting, provenance.
std::string describe_run(const ResultsFile& file, const std::string& run, std::size_t columns = kAnyWidth);

// The routing of a run at its last record, a layer each.
struct LayerHealth {
  std::int64_t layer = 0, num_experts = 0;
  double load_cv = kNotMeasured, dead_fraction = kNotMeasured, fraction_dropped = kNotMeasured,
         router_entropy = kNotMeasured, max_violation = kNotMeasured;
};
std::vector<LayerHealth> routing_health(const ResultsFile& file, const std::string& run);

// The same as tables.
TextTable runs_table(const std::vector<RunSummary>& runs);
TextTable health_table(const ResultsFile& file, const std::vector<std::string>& runs);
// Of the group of an accounting; without rows where it has none.
TextTable accounting_table(const hdf5::Reader& reader, const std::string& group);

// One line: what the variants of the file are compared with, by which metric, and how that is changed. Empty
// where there are no runs.
std::string baseline_note(const ResultsFile& file);

}  // namespace moelab

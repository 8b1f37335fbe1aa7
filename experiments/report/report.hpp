// One self-contained HTML page of an experiment: question, verdict, comparison, figures, accounting, health
// of the routing, what the variants differ in, provenance. No script, no network, nothing but this file.
#pragma once

#include "experiments/results/results_file.hpp"

#include <filesystem>
#include <string>

namespace moelab::report {

std::string to_html(const ResultsFile& file);
void write_report(const std::filesystem::path& path, const ResultsFile& file);

// The outcome in a sentence, no stronger than the seeds allow.
std::string verdict(const ResultsFile& file);

}  // namespace moelab::report

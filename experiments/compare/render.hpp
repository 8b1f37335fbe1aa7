// A comparison as text.
#pragma once

#include "experiments/compare/comparison.hpp"
#include "experiments/compare/text_table.hpp"

#include <string>
#include <vector>

namespace moelab {

// The figures of a variant by the names that csv and json give them: mean, delta, delta_ci_low,
// relative_compute, ...
const std::vector<std::string>& figure_names();
// NaN where it is not known. Error if there is no such figure.
double figure(const VariantResult& variant, const std::string& name);

enum class TableFormat { table, markdown, csv, json, latex };
// From "table", "md", "csv", "json" or "latex". Throws ConfigError listing them.
TableFormat table_format(const std::string& name);

// The table for people, and the notes that belong below it: what the figures mean, and what they cannot say.
TextTable comparison_table(const Comparison& comparison);
std::vector<std::string> comparison_notes(const Comparison& comparison);

// For people: the table with its notes. As csv and
// json: every figure, exactly.
std::string render(const Comparison& comparison, TableFormat format);

}  // namespace moelab

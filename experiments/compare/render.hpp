// A comparison as text.
#pragma once

#include "experiments/compare/comparison.hpp"
#include "experiments/compare/text_table.hpp"

#include <string>
#include <vector>

namespace moelab {

enum class TableFormat { table, markdown, csv, json, latex };
// From "table", "md", "csv", "json" or "latex". Throws ConfigError listing them.
TableFormat table_format(const std::string& name);

// The table for people, and the notes that belong below it: what the figures mean, and what they cannot say.
TextTable comparison_table(const Comparison& comparison);
std::vector<std::string> comparison_notes(const Comparison& comparison);
// Those of them that say which variants have other data than their baseline.
std::vector<std::string> notes_on_data(const Comparison& comparison);

// For people: the table with its notes. As csv and json: every figure, exactly.
// A table is laid out for this many columns.
std::string render(const Comparison& comparison, TableFormat format, std::size_t columns = kAnyWidth);

}  // namespace moelab

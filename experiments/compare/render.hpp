// A comparison as text.
#pragma once

#include "experiments/compare/comparison.hpp"

#include <string>

namespace moelab {

enum class TableFormat { table, markdown, csv, json, latex };
// From "table", "md", "csv", "json" or "latex". Throws ConfigError listing them.
TableFormat table_format(const std::string& name);

// For people: the table with notes below it on what the figures mean and what they cannot say. As csv and
// json: every figure, exactly.
std::string render(const Comparison& comparison, TableFormat format);

}  // namespace moelab

// What a benchmark found, as text, JSON or HDF5.
#pragma once

#include "core/hdf5.hpp"

#include <string>
#include <vector>

namespace moelab::bench {

struct Column {
  std::string name;  // a word
  std::string unit;  // "GFLOP/s", "tokens/s", "ms", "1" for a ratio
  std::string help;  // a few words
  int digits = 0;    // after the point, in text
};

struct Row {
  std::vector<std::string> labels;
  std::vector<double> values;  // NaN: does not apply
};

struct Table {
  std::string name;                 // a word
  std::string title;                // a sentence
  std::vector<std::string> labels;  // names of the label columns
  std::vector<Column> columns;
  std::vector<Row> rows;
  // Error when the row does not fit the columns.
  void add(Row row);
};

struct Report {
  // What was measured on, as name and value.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<Table> tables;
};
// The facts of this build and machine.
Report new_report();

std::string to_text(const Report& report);
// {"facts": {...}, "tables": {name: [{label: ..., column: ...}, ...]}}; NaN becomes null.
std::string to_json(const Report& report);
// One group a table, one dataset a column.
hdf5::Group to_hdf5(const Report& report);

}  // namespace moelab::bench

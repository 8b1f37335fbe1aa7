#include "experiments/bench/table.hpp"

#include "core/build_info.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace moelab::bench {

namespace {

std::string cell(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string to_text(const Table& table) {
  // Every cell as text first, then padded to the widest of its column. Labels stand left, numbers right.
  std::vector<std::vector<std::string>> lines(table.rows.size() + 2);
  for (const std::string& label : table.labels) {
    lines[0].push_back(label);
    lines[1].emplace_back();
  }
  for (const Column& column : table.columns) {
    lines[0].push_back(column.name);
    lines[1].push_back(column.unit == "1" ? "" : column.unit);
  }
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    lines[r + 2] = table.rows[r].labels;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      lines[r + 2].push_back(cell(table.rows[r].values[c], table.columns[c].digits));
    }
  }
  std::string text = table.title + "\n";
  for (const auto& line : lines) {
    std::string padded;
    for (std::size_t c = 0; c < line.size(); ++c) {
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[c].size());
      padded += c < table.labels.size() ? fmt::format("{:<{}}  ", line[c], width)
                                        : fmt::format("{:>{}}  ", line[c], width);
    }
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + "\n";
  }
  return text;
}

}  // namespace

void Table::add(Row row) {
  require(row.labels.size() == labels.size() && row.values.size() == columns.size(),
          "[bench] a row of {} labels and {} values in table {} of {} and {}", row.labels.size(),
          row.values.size(), name, labels.size(), columns.size());
  rows.push_back(std::move(row));
}

Report new_report() {
  const BuildInfo info = build_info();
  return {{{"version", info.version},
           {"compiler", info.compiler},
           {"compiler_flags", info.compiler_flags},
           {"cpu", info.cpu_model},
           {"isa", info.isa_compiled},
           {"float32", info.gemm_float32},
           {"bfloat16", info.gemm_bfloat16},
           {"threads", std::to_string(info.threads)}},
          {}};
}

std::string to_text(const Report& report) {
  std::string text;
  for (const auto& [name, value] : report.facts) text += fmt::format("{:<16}{}\n", name, value);
  for (const Table& table : report.tables) text += "\n" + to_text(table);
  return text;
}

std::string to_json(const Report& report) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : report.facts) json["facts"][name] = value;
  for (const Table& table : report.tables) {
    auto& rows = json["tables"][table.name] = nlohmann::ordered_json::array();
    for (const Row& row : table.rows) {
      nlohmann::ordered_json object;
      for (std::size_t c = 0; c < row.labels.size(); ++c) object[table.labels[c]] = row.labels[c];
      for (std::size_t c = 0; c < row.values.size(); ++c) {
        if (std::isnan(row.values[c])) {
          object[table.columns[c].name] = nullptr;
        } else {
          object[table.columns[c].name] = row.values[c];
        }
      }
      rows.push_back(std::move(object));
    }
  }
  return json.dump(2);
}

hdf5::Group to_hdf5(const Report& report) {
  hdf5::Group root;
  for (const auto& [name, value] : report.facts) root.attribute(name, value);
  for (const Table& table : report.tables) {
    hdf5::Group& group = root.group(table.name);
    group.attribute("title", table.title);
    for (std::size_t c = 0; c < table.labels.size(); ++c) {
      std::vector<std::string> values;
      for (const Row& row : table.rows) values.push_back(row.labels[c]);
      group.series(table.labels[c], "row", std::move(values), {"1", table.labels[c]});
    }
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      std::vector<double> values;
      for (const Row& row : table.rows) values.push_back(row.values[c]);
      group.series(table.columns[c].name, "row", std::move(values),
                   {table.columns[c].unit, table.columns[c].help});
    }
  }
  return root;
}

}  // namespace moelab::bench

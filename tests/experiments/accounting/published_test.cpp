// Published architectures against their exact figures, and what a config must not get away with.
#include "experiments/accounting/published.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace moelab;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string kCounts = std::string(MOELAB_TEST_DATA) + "/counts/";

Accounting count(const std::string& json, Index context = 4096) {
  return account_published(json, "config.json", context);
}

// Rows of counts.csv by column name. The last column may hold quoted commas and is not read.
std::vector<std::map<std::string, std::string>> expected_figures() {
  std::stringstream csv(read_file(kCounts + "counts.csv"));
  std::string line;
  std::getline(csv, line);
  std::vector<std::string> columns;
  for (std::stringstream cells(line); std::getline(cells, line, ',');) columns.push_back(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(csv, line)) {
    std::stringstream cells(line);
    std::string cell;
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < 9 && std::getline(cells, cell, ','); ++i) row[columns[i]] = cell;
  }
  return rows;
}

}  // namespace

TEST_CASE("published models come out to the last digit") {
  const auto rows = expected_figures();
  REQUIRE(rows.size() == 20);
  for (const auto& row : rows) {
    const std::string& name = row.at("name");
    INFO(name);
    const Accounting a = count(read_file(kCounts + name + ".json"), 1000);
    CHECK(std::to_string(a.total) == row.at("total"));
    CHECK(std::to_string(a.active_all) == row.at("active_all"));
    CHECK(std::to_string(a.active_without_input_embedding) == row.at("active_without_input_embedding"));
    CHECK(std::to_string(a.active_without_embeddings) == row.at("active_without_embeddings"));
    CHECK(std::to_string(a.experts_routed_total) == row.at("experts_routed_total"));
    CHECK(std::to_string(a.flops_forward_per_token) == row.at("matmul_flops_forward_per_token"));
    const std::string& attention = row.at("attention_flops_forward_per_token_per_context_token");
    CHECK(a.attention_flops_full.has_value() == !attention.empty());
    if (a.attention_flops_full) CHECK(*a.attention_flops_full == 1000 * std::stoll(attention));
  }
}

#include "experiments/compare/other_data.hpp"

#include "core/diagnostics.hpp"
#include "core/yaml_leaves.hpp"

#include <algorithm>

namespace moelab {

namespace {

yaml::Leaves leaves_of(const std::string& config) {
  Diagnostics diagnostics;
  yaml::Node root = yaml::parse(config, yaml::make_source("resolved config", config), diagnostics);
  yaml::Node* data = root.find("data");
  if (diagnostics.num_errors() > 0 || data == nullptr) return {};
  for (const char* place : {"corpus", "path", "package"}) data->erase(place);
  if (yaml::Node* tokenizer = data->find("tokenizer")) tokenizer->erase("file");
  if (yaml::Node* domains = data->find("domains")) {
    for (yaml::Node& domain : domains->items) {
      for (const char* free : {"path", "package", "weight"}) domain.erase(free);
    }
  }
  yaml::Leaves leaves = yaml::leaves_of(*data, "data");
  const yaml::Node* eval = root.find("eval");
  const yaml::Node* tokens = eval == nullptr ? nullptr : eval->find("max_tokens");
  if (tokens != nullptr) leaves["eval.max_tokens"] = yaml::emit_flow(*tokens);
  return leaves;
}

}  // namespace

std::vector<std::string> other_data(const RunOnData& one, const RunOnData& two) {
  const yaml::Leaves mine = leaves_of(one.config), theirs = leaves_of(two.config);
  if (mine.empty() || theirs.empty()) return {};
  std::vector<std::string> keys = yaml::differing_keys(mine, theirs);
  if (std::ranges::find(keys, "data.kind") != keys.end()) return {"data.kind"};
  const bool are_known = !one.checksum.empty() && !two.checksum.empty();
  if (keys.empty() && are_known && one.checksum != two.checksum) keys.emplace_back("what the files hold");
  return keys;
}

bool is_metric_of_data(const std::string& metric, const std::vector<std::string>& keys) {
  const auto is_cutting = [](const std::string& key) {
    return key.starts_with("data.tokenizer.") || key == "data.seq_len";
  };
  if (metric.ends_with("/bits_per_byte")) return !std::ranges::all_of(keys, is_cutting);
  return !keys.empty() && (metric.starts_with("eval/") || metric.starts_with("train/"));
}

}  // namespace moelab

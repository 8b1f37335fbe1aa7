#include "experiments/compare/other_data.hpp"

#include "core/diagnostics.hpp"
#include "core/yaml.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace moelab {

namespace {

using Leaves = std::map<std::string, std::string>;  // dotted keys and their values as YAML

void add_leaves(const yaml::Node& node, const std::string& path, Leaves& leaves) {
  if (!node.is_mapping()) {
    leaves[path] = yaml::emit_flow(node);
    return;
  }
  for (const yaml::Node::Entry& entry : node.entries) {
    add_leaves(entry.value, path + "." + entry.key, leaves);
  }
}

Leaves evaluated_on(const std::string& config) {
  Diagnostics diagnostics;
  yaml::Node root = yaml::parse(config, yaml::make_source("resolved config", config), diagnostics);
  yaml::Node* data = root.find("data");
  if (diagnostics.num_errors() > 0 || data == nullptr) return {};
  if (yaml::Node* domains = data->find("domains")) {
    for (yaml::Node& domain : domains->items) domain.erase("weight");
  }
  Leaves leaves;
  add_leaves(*data, "data", leaves);
  const yaml::Node* eval = root.find("eval");
  const yaml::Node* tokens = eval == nullptr ? nullptr : eval->find("max_tokens");
  if (tokens != nullptr) add_leaves(*tokens, "eval.max_tokens", leaves);
  return leaves;
}

}  // namespace

std::vector<std::string> keys_of_other_data(const std::string& config, const std::string& other) {
  const Leaves mine = evaluated_on(config), theirs = evaluated_on(other);
  if (mine.empty() || theirs.empty()) return {};
  std::set<std::string> keys;
  for (const Leaves* leaves : {&mine, &theirs}) {
    for (const auto& [key, value] : *leaves) {
      const auto one = mine.find(key), two = theirs.find(key);
      if (one == mine.end() || two == theirs.end() || one->second != two->second) keys.insert(key);
    }
  }
  if (keys.contains("data.kind")) return {"data.kind"};
  return {keys.begin(), keys.end()};
}

bool is_metric_of_data(const std::string& metric, const std::vector<std::string>& keys) {
  const auto is_cutting = [](const std::string& key) {
    return key.starts_with("data.tokenizer.") || key == "data.seq_len";
  };
  if (metric.ends_with("/bits_per_byte")) return !std::ranges::all_of(keys, is_cutting);
  return !keys.empty() && (metric.starts_with("eval/") || metric.starts_with("train/"));
}

}  // namespace moelab

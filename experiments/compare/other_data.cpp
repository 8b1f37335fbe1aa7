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

Leaves leaves_of(const std::string& config) {
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
  Leaves leaves;
  add_leaves(*data, "data", leaves);
  const yaml::Node* eval = root.find("eval");
  const yaml::Node* tokens = eval == nullptr ? nullptr : eval->find("max_tokens");
  if (tokens != nullptr) add_leaves(*tokens, "eval.max_tokens", leaves);
  return leaves;
}

}  // namespace

std::vector<std::string> other_data(const RunOnData& one, const RunOnData& two) {
  const Leaves mine = leaves_of(one.config), theirs = leaves_of(two.config);
  if (mine.empty() || theirs.empty()) return {};
  std::set<std::string> keys;
  for (const Leaves* leaves : {&mine, &theirs}) {
    for (const auto& [key, value] : *leaves) {
      const auto at_mine = mine.find(key), at_theirs = theirs.find(key);
      if (at_mine == mine.end() || at_theirs == theirs.end() || at_mine->second != at_theirs->second)
        keys.insert(key);
    }
  }
  if (keys.contains("data.kind")) return {"data.kind"};
  const bool are_known = !one.checksum.empty() && !two.checksum.empty();
  if (keys.empty() && are_known && one.checksum != two.checksum) keys.insert("what the files hold");
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

#include "core/yaml_leaves.hpp"

#include <set>

namespace moelab::yaml {

namespace {

void add_leaves(const Node& node, const std::string& path, Leaves& leaves) {
  if (!node.is_mapping()) {
    std::string text = emit_flow(node);
    while (text.ends_with('\n')) text.pop_back();
    leaves[path] = text;
    return;
  }
  for (const Node::Entry& entry : node.entries) {
    add_leaves(entry.value, path.empty() ? entry.key : path + "." + entry.key, leaves);
  }
}

}  // namespace

Leaves leaves_of(const Node& node, const std::string& path) {
  Leaves leaves;
  add_leaves(node, path, leaves);
  return leaves;
}

std::vector<std::string> differing_keys(const Leaves& one, const Leaves& two) {
  std::set<std::string> keys;
  for (const Leaves* leaves : {&one, &two}) {
    for (const auto& [key, value] : *leaves) {
      const auto a = one.find(key), b = two.find(key);
      if (a == one.end() || b == two.end() || a->second != b->second) keys.insert(key);
    }
  }
  return {keys.begin(), keys.end()};
}

}  // namespace moelab::yaml

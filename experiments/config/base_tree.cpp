#include "experiments/config/base_tree.hpp"

#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/interpolate.hpp"
#include "experiments/config/patch.hpp"

namespace moelab {

using yaml::Node;

Node run_tree(const Node& root) {
  Node tree = Node::mapping();
  tree.mark = root.mark;
  for (const std::string& block : run_blocks()) {
    if (const Node::Entry* entry = root.find_entry(block)) tree.entries.push_back(*entry);
  }
  return tree;
}

Node resolve_tree(const Node& root) {
  Diagnostics untold;
  Node copy = run_tree(root);
  interpolate(copy, untold);
  RunConfig config;
  read_fields(copy, config, untold);
  return write_fields(config);
}

void apply_overrides(Node& root, const std::vector<std::string>& overrides, Diagnostics& diagnostics) {
  if (Node* variants = root.find("variants"); variants != nullptr && !overrides.empty()) {
    for (Node::Entry& variant : variants->entries) {
      variant.value = expand_dotted_keys(variant.value, diagnostics);
    }
  }
  int number = 0;
  for (const std::string& text : overrides) {
    const Node patch = parse_override(text, ++number, diagnostics);
    if (root.is_mapping()) apply_patch(root, patch, resolve_tree);
  }
}

}  // namespace moelab

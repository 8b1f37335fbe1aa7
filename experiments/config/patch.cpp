#include "experiments/config/patch.hpp"

#include <vector>

#include <fmt/format.h>

namespace moelab {

using yaml::Node;

namespace {

// Merges `value` at `key` of `into`; two mappings share their keys, anything else is set once.
void add_entry(Node& into, const std::string& key, const Mark& mark, Node value, Diagnostics& diagnostics) {
  Node* old = into.find(key);
  if (old == nullptr) {
    into.entries.push_back({key, mark, std::move(value)});
  } else if (old->is_mapping() && value.is_mapping()) {
    for (Node::Entry& entry : value.entries) {
      add_entry(*old, entry.key, entry.key_mark, std::move(entry.value), diagnostics);
    }
  } else {
    diagnostics.error(mark, fmt::format("`{}` is set twice in this patch", key),
                      fmt::format("it is also set in line {}", into.find_entry(key)->key_mark.line));
  }
}

bool is_dotted(const std::string& key) {
  return key.find('.') != std::string::npos && key.front() != '.' && key.back() != '.' &&
         key.find("..") == std::string::npos;
}

// The names of a dotted key; the keys of sweep.grid and sweep.zip are dotted themselves.
std::vector<std::string> names_in(const std::string& key) {
  const bool is_axis = key.starts_with("sweep.grid.") || key.starts_with("sweep.zip.");
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (!is_axis || names.size() < 2) {
    const std::size_t dot = key.find('.', begin);
    names.push_back(key.substr(begin, dot - begin));
    if (dot == std::string::npos) return names;
    begin = dot + 1;
  }
  names.push_back(key.substr(begin));
  return names;
}

// Writes out the dotted keys of a value that stands at `names`, where it is a patch or a part of one. Names
// of variants and keys of sweeps are no paths.
void expand_patches_in(Node& value, const std::vector<std::string>& names, Diagnostics& diagnostics) {
  if (names.front() == "sweep") return;
  if (names.front() != "variants" || names.size() > 1) {
    value = expand_dotted_keys(value, diagnostics);
    return;
  }
  for (Node::Entry& entry : value.entries) entry.value = expand_dotted_keys(entry.value, diagnostics);
}

const std::string* kind_of(const Node* node) {
  const Node* kind = node == nullptr ? nullptr : node->find("kind");
  return kind != nullptr && kind->is_scalar() ? &kind->text : nullptr;
}

// `resolved` is what `base` means with defaults, or null pointer where that is not known.
void merge(Node& base, const Node& patch, const Node* resolved) {
  if (!patch.is_mapping()) {
    base = patch;
    return;
  }
  if (base.is_scalar() && resolved != nullptr && resolved->is_mapping()) {
    const Mark mark = base.mark;
    base = *resolved;
    yaml::set_marks(base, mark);
    yaml::set_final(base);  // what came of references, the text of the environment too, is not read again
  }
  const std::string* new_kind = kind_of(&patch);
  const std::string* old_kind = kind_of(&base);
  if (old_kind == nullptr) old_kind = kind_of(resolved);
  const bool replaces = new_kind != nullptr && old_kind != nullptr && *new_kind != *old_kind;
  if (!base.is_mapping() || replaces) {
    base = patch;
    return;
  }
  for (const Node::Entry& entry : patch.entries) {
    const Node* resolved_child = resolved == nullptr ? nullptr : resolved->find(entry.key);
    if (Node* child = base.find(entry.key)) {
      merge(*child, entry.value, resolved_child);
    } else {
      Node child_value;
      if (entry.value.is_mapping()) child_value = Node::mapping();
      child_value.mark = entry.value.mark;
      merge(child_value, entry.value, resolved_child);
      base.entries.push_back({entry.key, entry.key_mark, std::move(child_value)});
    }
  }
}

}  // namespace

Node expand_dotted_keys(const Node& patch, Diagnostics& diagnostics) {
  if (!patch.is_mapping()) return patch;
  Node out = Node::mapping();
  out.mark = patch.mark;
  for (const Node::Entry& entry : patch.entries) {
    Node value = expand_dotted_keys(entry.value, diagnostics);
    std::string key = entry.key;
    // From the last name to the first: a.b.c becomes {a: {b: {c: value}}}.
    while (is_dotted(key)) {
      const std::size_t dot = key.rfind('.');
      Node outer = Node::mapping();
      outer.mark = entry.key_mark;
      outer.entries.push_back({key.substr(dot + 1), entry.key_mark, std::move(value)});
      value = std::move(outer);
      key.resize(dot);
    }
    add_entry(out, key, entry.key_mark, std::move(value), diagnostics);
  }
  return out;
}

void apply_patch(Node& base, const Node& patch, const Resolve& resolve) {
  const Node resolved = resolve ? resolve(base) : Node();
  merge(base, patch, resolve ? &resolved : nullptr);
}

const Node* find_path(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

Node parse_override(const std::string& text, int number, Diagnostics& diagnostics) {
  const auto source = yaml::make_source(fmt::format("<override {}>", number), text);
  const Mark start{source, 1, 1};
  const std::size_t equals = source->text.find('=');
  Node patch = Node::mapping();
  patch.mark = start;
  if (equals == std::string::npos || equals == 0) {
    diagnostics.error(start, fmt::format("`{}` is not an override", text),
                      "write KEY=VALUE, as in train.optimizer.lr=3e-4");
    return patch;
  }
  const std::string key = source->text.substr(0, equals);
  if (key.find_first_of(" \t{}:,\"'") != std::string::npos ||
      (!is_dotted(key) && key.find('.') != std::string::npos)) {
    diagnostics.error(start, fmt::format("`{}` is not a dotted key", key));
    return patch;
  }
  const std::string_view text_of_value = std::string_view(source->text).substr(equals + 1);
  Node value = yaml::parse(text_of_value, source, diagnostics, static_cast<int>(equals) + 2);
  if (value.mark.source == nullptr) value.mark = start;
  const std::vector<std::string> names = names_in(key);
  expand_patches_in(value, names, diagnostics);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    Node outer = Node::mapping();
    outer.mark = start;
    outer.entries.push_back({*name, start, std::move(value)});
    value = std::move(outer);
  }
  return value;
}

}  // namespace moelab

// Patches: YAML that changes a part of other YAML. Variants, sweep points and command-line overrides are
// patches on the base experiment.
#pragma once

#include "core/yaml.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace moelab {

// Writes out dotted keys: {a.b: 1, a: {c: 2}} becomes {a: {b: 1, c: 2}}. Keys keep their positions. A leaf
// that is set twice is an error.
yaml::Node expand_dotted_keys(const yaml::Node& patch, Diagnostics& diagnostics);

// The tree `base` with every default spelled out. Where it cannot be known it may be left out.
using Resolve = std::function<yaml::Node(const yaml::Node& base)>;

// Merges an expanded patch into `base`: a mapping merges key by key, anything else replaces. A mapping whose
// `kind` differs from the one that it lands on (or from the default one, found through `resolve`) replaces it
// whole. A mapping that lands on a plain value that stands for a mapping (`tokenizer: byte`) lands on that.
void apply_patch(yaml::Node& base, const yaml::Node& patch, const Resolve& resolve);

// The value at a dotted path, or null pointer.
const yaml::Node* find_path(const yaml::Node& root, std::string_view path);

// A patch from `a.b=value`, where the value is YAML.
yaml::Node parse_override(const std::string& text, int number, Diagnostics& diagnostics);

}  // namespace moelab

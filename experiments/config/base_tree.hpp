// The tree of an experiment file before variants and sweeps: its blocks, its defaults, its overrides.
#pragma once

#include "core/yaml.hpp"

#include <string>
#include <vector>

namespace moelab {

// The blocks of a run out of the tree of a whole file.
yaml::Node run_tree(const yaml::Node& root);

// The blocks of a run with every default written out, as apply_patch asks for it. Errors are told elsewhere.
yaml::Node resolve_tree(const yaml::Node& root);

// Applies overrides, `a.b=value` each, to the tree of a whole file, in their order. Dotted keys of its
// variants are written out, so that an override finds what they set.
void apply_overrides(yaml::Node& root, const std::vector<std::string>& overrides, Diagnostics& diagnostics);

}  // namespace moelab

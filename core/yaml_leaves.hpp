// The values of a tree of mappings, by their dotted keys.
#pragma once

#include "core/yaml.hpp"

#include <map>
#include <string>
#include <vector>

namespace moelab::yaml {

using Leaves = std::map<std::string, std::string>;  // values as YAML on one line; a list is one value

// Keys begin with `path`, where one is given.
Leaves leaves_of(const Node& node, const std::string& path = {});

// The keys that only one of them has, or of which the values differ, in alphabetic order.
std::vector<std::string> differing_keys(const Leaves& one, const Leaves& two);

}  // namespace moelab::yaml

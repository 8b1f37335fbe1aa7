// Reads a config struct from YAML, strictly: unknown keys, wrong types and values out of range are recorded
// as diagnostics with their position, all of them, and leave the default in place.
#pragma once

#include "core/fields.hpp"
#include "core/yaml.hpp"

#include <functional>
#include <string>

namespace moelab {

struct ReaderOptions {
  // What to write instead of a key that is unknown at the dotted path of its mapping ("model.ffn"): for names
  // of other programs and keys that belong elsewhere. Empty: nothing known.
  std::function<std::string(const std::string& path, const std::string& key)> advise;
};

// `path` is the dotted name of `node` in messages; empty for the whole file.
template <class T>
void read_fields(const yaml::Node& node, T& value, Diagnostics& diagnostics,
                 const ReaderOptions& options = {}, const std::string& path = {});

// The same for a type-erased value.
void read_value(const yaml::Node& node, const ValueRef& value, const FieldInfo& info, const std::string& path,
                Diagnostics& diagnostics, const ReaderOptions& options);

template <class T>
void read_fields(const yaml::Node& node, T& value, Diagnostics& diagnostics, const ReaderOptions& options,
                 const std::string& path) {
  read_value(node, ValueRef::to(value), {}, path, diagnostics, options);
}

}  // namespace moelab

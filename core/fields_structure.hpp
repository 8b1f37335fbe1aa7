// How mappings of a file become structs, and single values their fields: the two halves of the strict reader
// (core/fields_reader), which call each other.
#pragma once

#include "core/fields_reader.hpp"

#include <string>
#include <string_view>

namespace moelab {

// What all readers of one file share.
struct ReadContext {
  Diagnostics& diagnostics;
  const ReaderOptions& options;
};

// The path of a part; that of the whole where the part has no name.
std::string join_path(const std::string& path, std::string_view name);

// The fields of a struct from a mapping, or from the one value that stands for it: its kind, or the field
// that is its shorthand. Keys that no field has are told.
void read_structure(const yaml::Node& node, const std::string& path, StructRef& value, ReadContext& context);

// One value of any type, and one text.
void read_value(const yaml::Node& node, const std::string& path, const ValueRef& value, const FieldInfo& info,
                ReadContext& context);
void read_text(const yaml::Node& node, const std::string& path, std::string& value, const FieldInfo& info,
               ReadContext& context);

}  // namespace moelab

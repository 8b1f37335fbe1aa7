// What a config struct accepts, as a tree: for the JSON Schema, the documentation and the search for keys.
#pragma once

#include "core/fields.hpp"
#include "core/yaml.hpp"

#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct Description {
  enum class Type { boolean, integer, number, text, any, list, named, structure };
  struct Field;
  // The fields of a struct, by kind. A struct without kinds has one form with an empty kind.
  struct Form {
    std::string kind;
    std::vector<Field> fields;  // without `kind` itself
  };

  Type type = Type::any;
  bool optional = false;  // null is allowed
  FieldInfo info;
  yaml::Node default_value;          // of a required field: what an absent one would have
  std::vector<Description> element;  // list, named: one description
  std::vector<Form> forms;           // structure
  std::string default_kind;          // structure with kinds
  FieldInfo kind_info;               // structure with kinds
};

struct Description::Field {
  std::string name;
  Description description;
};

Description describe_value(const ValueRef& value, const FieldInfo& info);

template <class T>
Description describe_fields(const T& prototype) {
  T copy = prototype;
  return describe_value(ValueRef::to(copy), {});
}

// The dotted paths of all fields, of all kinds, each once, in order. A list adds nothing to a path, a name of
// a mapping `<name>`.
std::vector<std::string> field_paths(const Description& description);

// JSON Schema (draft-07) of YAML files that hold such a struct. `title` is shown by editors.
std::string json_schema(const Description& description, const std::string& title);

// What a field accepts and what it is when it is not given, as words, names in backticks.
std::string type_text(const Description& description);
std::string default_text(const Description& description);

// The default of a plain value as JSON; empty: required, or not a plain value.
std::string default_json(const Description& description);

// A Markdown table of the fields of one form: key, type, default, help. Fields that are structs of their own
// have a row and are described elsewhere.
std::string field_table(const std::vector<Description::Field>& fields);

}  // namespace moelab

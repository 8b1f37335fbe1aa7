#include "experiments/config/schema.hpp"

#include "core/fields_describe.hpp"
#include "experiments/config/experiment_file.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace moelab {

namespace {

using Type = Description::Type;

// The struct that a field holds, directly or as elements; null pointer for plain values.
const Description* struct_in(const Description& d) {
  const Description* at = &d;
  while (at->type == Type::list || at->type == Type::named) at = &at->element.front();
  return at->type == Type::structure ? at : nullptr;
}

// Fields that all kinds share are told once; those of one kind below the kind.
bool in_all_forms(const Description& d, const std::string& name) {
  for (const Description::Form& form : d.forms) {
    bool found = false;
    for (const Description::Field& field : form.fields) found = found || field.name == name;
    if (!found) return false;
  }
  return true;
}

class ReferenceWriter {
 public:
  std::string text;

  void block(const Description& d, const std::string& path) {
    if (path == "model.layers.ffn") return;  // as model.ffn
    text += fmt::format("\n### `{}`\n\n", path.empty() ? "the file" : path);
    if (!path.empty() && !d.info.help.empty()) text += d.info.help + ".\n\n";
    if (d.default_kind.empty()) {
      table(d.forms.front().fields);
    } else {
      kinds(d);
    }
    std::vector<std::string> told;
    for (const Description::Form& form : d.forms) {
      for (const Description::Field& field : form.fields) {
        const Description* below = struct_in(field.description);
        if (below == nullptr || std::find(told.begin(), told.end(), field.name) != told.end()) continue;
        told.push_back(field.name);
        block(*below, path.empty() ? field.name : path + "." + field.name);
      }
    }
  }

 private:
  void table(const std::vector<Description::Field>& fields) {
    if (!fields.empty()) text += field_table(fields);
  }

  void kinds(const Description& d) {
    std::string names;
    for (const Description::Form& form : d.forms) names += (names.empty() ? "`" : ", `") + form.kind + "`";
    text += fmt::format("`kind`: {} (default `{}`). {}.\n", names, d.default_kind, d.kind_info.help);
    std::vector<Description::Field> shared;
    for (const Description::Field& field : d.forms.front().fields) {
      if (in_all_forms(d, field.name)) shared.push_back(field);
    }
    if (!shared.empty()) text += "\n";
    table(shared);
    for (const Description::Form& form : d.forms) {
      std::vector<Description::Field> own;
      for (const Description::Field& field : form.fields) {
        if (!in_all_forms(d, field.name)) own.push_back(field);
      }
      if (own.empty()) continue;
      text += fmt::format("\nkind `{}`:\n\n", form.kind);
      table(own);
    }
  }
};

}  // namespace

std::string experiment_schema() { return json_schema(describe_fields(WholeFile{}), "moelab experiment"); }

std::string experiment_reference() {
  ReferenceWriter writer;
  writer.block(describe_fields(WholeFile{}), "");
  return writer.text.substr(1);
}

}  // namespace moelab

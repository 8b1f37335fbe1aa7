#include "experiments/config/schema.hpp"

#include "core/fields_describe.hpp"
#include "experiments/config/experiment_file.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

using Type = Description::Type;

// The struct that a field holds, directly or as elements; null pointer for plain values.
const Description* struct_in(const Description& d) {
  const Description* at = &d;
  while (at->type == Type::list || at->type == Type::named) at = &at->element.front();
  return at->type == Type::structure ? at : nullptr;
}

// Rows of a table that hold for the same kinds.
struct Rows {
  std::vector<std::string> kinds;
  std::vector<Description::Field> fields;
};

// The fields of all kinds, grouped by the kinds that have them in the same form.
std::vector<Rows> rows_of(const Description& d) {
  struct Row {
    std::string text;
    Description::Field field;
    std::vector<std::string> kinds;
  };
  std::vector<Row> rows;
  for (const Description::Form& form : d.forms) {
    for (const Description::Field& field : form.fields) {
      const std::string text = field_table({field});
      const auto known = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.text == text; });
      if (known == rows.end()) {
        rows.push_back({text, field, {form.kind}});
      } else {
        known->kinds.push_back(form.kind);
      }
    }
  }
  std::vector<Rows> out;
  for (const Row& row : rows) {
    auto group = std::find_if(out.begin(), out.end(), [&](const Rows& r) { return r.kinds == row.kinds; });
    if (group == out.end()) group = out.insert(out.end(), {row.kinds, {}});
    group->fields.push_back(row.field);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Rows& x, const Rows& y) { return x.kinds.size() > y.kinds.size(); });
  return out;
}

std::string body_of(const Description& d) {
  std::string out;
  const bool has_kinds = !d.default_kind.empty();
  if (has_kinds) {
    out += fmt::format("`kind`: `{}` (default `{}`). {}.\n", fmt::join(d.kind_info.choices, "`, `"),
                       d.default_kind, d.kind_info.help);
  }
  for (const Rows& rows : rows_of(d)) {
    if (has_kinds && rows.kinds.size() < d.forms.size()) {
      out += fmt::format("\n{} `{}`:\n", rows.kinds.size() == 1 ? "kind" : "kinds",
                         fmt::join(rows.kinds, "`, `"));
    }
    out += (out.empty() ? "" : "\n") + field_table(rows.fields);
  }
  return out;
}

// Every block of the file, blocks of the same content under one heading.
class ReferenceWriter {
 public:
  void add(const Description& d, const std::string& path) {
    if (path == "model.layers.ffn") return;  // as model.ffn
    const std::string body = body_of(d);
    const auto same =
        std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.body == body; });
    if (same != blocks_.end()) {
      same->paths.push_back(path);
    } else {
      blocks_.push_back({{path}, d.info.help, body});
    }
    std::vector<std::string> told;
    for (const Description::Form& form : d.forms) {
      for (const Description::Field& field : form.fields) {
        const Description* below = struct_in(field.description);
        if (below == nullptr || std::find(told.begin(), told.end(), field.name) != told.end()) continue;
        told.push_back(field.name);
        add(*below, path.empty() ? field.name : path + "." + field.name);
      }
    }
  }

  std::string text() const {
    std::string out;
    for (const Block& block : blocks_) {
      const bool is_top = block.paths.front().empty();
      out += is_top ? "### The file\n\n" : fmt::format("\n### `{}`\n\n", fmt::join(block.paths, "`, `"));
      if (!is_top && block.paths.size() == 1) out += block.help + ".\n\n";
      out += block.body;
    }
    return out;
  }

 private:
  struct Block {
    std::vector<std::string> paths;
    std::string help;
    std::string body;
  };
  std::vector<Block> blocks_;
};

}  // namespace

std::string experiment_schema() { return json_schema(describe_fields(WholeFile{}), "moelab experiment"); }

std::string corpus_schema() { return json_schema(describe_fields(CorpusFile{}), "moelab corpus"); }

std::string experiment_reference() {
  ReferenceWriter writer;
  writer.add(describe_fields(WholeFile{}), "");
  return writer.text();
}

}  // namespace moelab

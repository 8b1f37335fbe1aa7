#include "core/fields_structure.hpp"

#include "core/suggest.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace moelab {

namespace {

std::string where(const std::string& path) { return path.empty() ? "the file" : fmt::format("`{}`", path); }

// Sets the kind of a struct, so that its further fields are those of the kind; reads nothing else.
class KindReader final : public FieldVisitor {
 public:
  KindReader(const yaml::Node* node, std::string path, ReadContext& context)
      : node_(node), path_(std::move(path)), context_(context) {}
  bool has_kind() const { return has_kind_; }
  bool failed() const { return failed_; }
  const std::string& kind_name() const { return kind_; }
  const std::vector<std::string>& choices() const { return choices_; }

 protected:
  void on_field(std::string_view, const ValueRef&, const FieldInfo&) override {}
  void on_kind(std::string& member, const FieldInfo& info) override {
    has_kind_ = true;
    choices_ = info.choices;
    if (node_ != nullptr) {
      const std::size_t before = context_.diagnostics.num_errors();
      read_text(*node_, join_path(path_, "kind"), member, info, context_);
      failed_ = context_.diagnostics.num_errors() > before;
    }
    kind_ = member;
  }

 private:
  const yaml::Node* node_;
  std::string path_;
  ReadContext& context_;
  bool has_kind_ = false;
  bool failed_ = false;
  std::string kind_;
  std::vector<std::string> choices_;
};

// Reads the one field that a plain value stands for.
class ShorthandReader final : public FieldVisitor {
 public:
  ShorthandReader(const yaml::Node& node, std::string path, ReadContext& context)
      : node_(node), path_(std::move(path)), context_(context) {}
  bool found() const { return found_; }

 protected:
  void on_field(std::string_view, const ValueRef& value, const FieldInfo& info) override {
    if (!info.shorthand) return;
    found_ = true;
    read_value(node_, path_, value, info, context_);
  }
  void on_kind(std::string&, const FieldInfo&) override {}

 private:
  const yaml::Node& node_;
  std::string path_;
  ReadContext& context_;
  bool found_ = false;
};

// The names of the fields that a struct has as another kind.
class NameCollector final : public FieldVisitor {
 public:
  explicit NameCollector(std::string kind) : kind_(std::move(kind)) {}
  bool has(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

 protected:
  void on_field(std::string_view name, const ValueRef&, const FieldInfo&) override {
    names_.emplace_back(name);
  }
  void on_kind(std::string& member, const FieldInfo&) override { member = kind_; }

 private:
  std::string kind_;
  std::vector<std::string> names_;
};

// Reads the fields of a mapping and finds the keys that no field has claimed.
class MappingReader final : public FieldVisitor {
 public:
  MappingReader(const yaml::Node& node, std::string path, const KindReader& kind, ReadContext& context)
      : node_(node),
        path_(std::move(path)),
        kind_(kind),
        context_(context),
        errors_before_(context.diagnostics.num_errors()) {
    if (kind.has_kind()) known_.emplace_back("kind");
  }

  void check_keys(StructRef& value) {
    for (const yaml::Node::Entry& entry : node_.entries) {
      if (std::find(known_.begin(), known_.end(), entry.key) == known_.end()) unknown_key(entry, value);
    }
  }

 protected:
  void on_field(std::string_view name, const ValueRef& value, const FieldInfo& info) override {
    known_.emplace_back(name);
    const yaml::Node* child = node_.find(name);
    if (child != nullptr) {
      read_value(*child, join_path(path_, name), value, info, context_);
    } else if (info.required) {
      context_.diagnostics.error(node_.mark, fmt::format("{} needs the key `{}`", where(path_), name),
                                 info.help);
    }
  }

  void on_kind(std::string& member, const FieldInfo&) override { member = kind_.kind_name(); }

  void on_violation(std::string_view path, std::string_view message) override {
    if (context_.diagnostics.num_errors() > errors_before_) return;
    context_.diagnostics.error(mark_of(path), fmt::format("{}: {}", join_path(path_, path), message));
  }

 private:
  // The deepest part of a relative path that stands in the file.
  Mark mark_of(std::string_view path) const {
    const yaml::Node* at = &node_;
    while (!path.empty()) {
      const std::size_t end = std::min(path.find_first_of(".["), path.size());
      const yaml::Node* next = at->find(path.substr(0, end));
      if (next == nullptr) break;
      at = next;
      path.remove_prefix(end);
      if (path.starts_with('.')) path.remove_prefix(1);
      if (path.starts_with('[')) {
        path.remove_prefix(1);
        const std::size_t close = std::min(path.find(']'), path.size());
        at = item_of(*at, path.substr(0, close));
        path.remove_prefix(std::min(close + 1, path.size()));
        if (path.starts_with('.')) path.remove_prefix(1);
      }
    }
    return at->mark;
  }

  static const yaml::Node* item_of(const yaml::Node& node, std::string_view index) {
    const auto i = static_cast<std::size_t>(std::atoi(std::string(index).c_str()));
    return node.is_list() && i < node.items.size() ? &node.items[i] : &node;
  }

  void unknown_key(const yaml::Node::Entry& entry, StructRef& value) {
    std::string help = other_kind(entry.key, value);
    if (help.empty() && context_.options.advise) help = context_.options.advise(path_, entry.key);
    if (help.empty()) help = did_you_mean(entry.key, known_, "known here: " + list_of(known_));
    context_.diagnostics.error(entry.key_mark, fmt::format("{} has no key `{}`", where(path_), entry.key),
                               help);
  }

  std::string other_kind(const std::string& key, StructRef& value) const {
    if (!kind_.has_kind()) return {};
    std::string found;
    for (const std::string& kind : kind_.choices()) {
      NameCollector names(kind);
      value.fields(names);
      if (found.empty() && names.has(key)) found = kind;
    }
    NameCollector back(kind_.kind_name());
    value.fields(back);
    if (found.empty()) return {};
    return fmt::format("`{}` belongs to kind {}; this is kind {}", key, found, kind_.kind_name());
  }

  const yaml::Node& node_;
  std::string path_;
  const KindReader& kind_;
  ReadContext& context_;
  std::size_t errors_before_;
  std::vector<std::string> known_;
};

}  // namespace

std::string join_path(const std::string& path, std::string_view name) {
  if (name.empty()) return path;
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

void read_structure(const yaml::Node& node, const std::string& path, StructRef& value, ReadContext& context) {
  if (!node.is_mapping()) {
    if (!node.is_null()) {
      ShorthandReader shorthand(node, path, context);
      value.fields(shorthand);
      if (shorthand.found()) return;
    }
    KindReader kind(node.is_scalar() ? &node : nullptr, path, context);
    value.fields(kind);
    if (kind.failed()) return;
    if (!node.is_scalar() || !kind.has_kind()) {
      context.diagnostics.error(
          node.mark, fmt::format("{} must be a mapping, not {}", where(path), yaml::describe(node)));
      return;
    }
    yaml::Node nothing = yaml::Node::mapping();
    nothing.mark = node.mark;
    MappingReader reader(nothing, path, kind, context);
    value.fields(reader);
    return;
  }
  KindReader kind(node.find("kind"), path, context);
  value.fields(kind);
  if (kind.failed()) return;
  MappingReader reader(node, path, kind, context);
  value.fields(reader);
  reader.check_keys(value);
}

}  // namespace moelab

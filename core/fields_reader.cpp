#include "core/fields_reader.hpp"

#include "core/error.hpp"
#include "core/field_range.hpp"
#include "core/suggest.hpp"
#include "core/visible.hpp"
#include "core/yaml_scalar.hpp"

#include <algorithm>
#include <type_traits>

namespace moelab {

namespace {

// What all readers of one file share.
struct Context {
  Diagnostics& diagnostics;
  const ReaderOptions& options;
};

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string where(const std::string& path) { return path.empty() ? "the file" : fmt::format("`{}`", path); }

class ValueReader final : public ValueVisitor {
 public:
  ValueReader(const yaml::Node& node, std::string path, Context& context)
      : node_(node), path_(std::move(path)), context_(context) {}

  void boolean(bool& value, const FieldInfo& /*info*/) override {
    const auto parsed = yaml::read_boolean(node_);
    if (const auto* error = std::get_if<yaml::ScalarError>(&parsed)) return fail_scalar(*error);
    value = std::get<bool>(parsed);
  }

  void integer(std::int64_t& value, const FieldInfo& info) override {
    number_in_range(yaml::read_integer(node_), value, info);
  }

  void number(double& value, const FieldInfo& info) override {
    number_in_range(yaml::read_number(node_), value, info);
  }

  void text(std::string& value, const FieldInfo& info) override {
    if (!node_.is_scalar()) {
      std::string help = info.choices.empty() ? "" : "one of " + list_of(info.choices);
      return error(fmt::format("{}: {} where text belongs", path_, yaml::describe(node_)), std::move(help));
    }
    const auto& choices = info.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), node_.text) == choices.end()) {
      return error(fmt::format("{}: {} is not one of {}", path_, yaml::describe(node_), list_of(choices)),
                   did_you_mean(nearest(node_.text, choices)));
    }
    if (has_control_character(node_.text, info.has_lines ? "\n\t" : "")) {
      return error(fmt::format("{}: {} holds a control character or a byte that is not UTF-8", path_,
                               yaml::describe(node_)),
                   info.has_lines ? "ends of lines and tabs can stand here, others cannot" : "");
    }
    value = node_.text;
  }

  void node(yaml::Node& value, const FieldInfo& /*info*/) override { value = node_; }

  void optional(OptionalRef& value, const FieldInfo& info) override {
    value.clear();
    if (!node_.is_null()) value.value().accept(*this, info);
  }

  void list(ListRef& value, const FieldInfo& info) override {
    const bool single = info.one_or_list && !node_.is_list() && !node_.is_null();
    if (!node_.is_list() && !single) {
      return error(fmt::format("{}: {} where a list belongs", path_, yaml::describe(node_)));
    }
    value.resize(0);
    value.resize(single ? 1 : node_.items.size());
    if (single) return value.element(0).accept(*this, info);
    for (std::size_t i = 0; i < node_.items.size(); ++i) {
      ValueReader reader(node_.items[i], fmt::format("{}[{}]", path_, i), context_);
      value.element(i).accept(reader, info);
    }
  }

  void named(NamedRef& value, const FieldInfo& info) override {
    value.clear();
    if (node_.is_null()) return;
    if (!node_.is_mapping()) {
      return error(fmt::format("{}: {} where a mapping from names belongs", path_, yaml::describe(node_)));
    }
    const auto& names = info.choices;
    FieldInfo element_info = info;
    element_info.choices.clear();
    for (const yaml::Node::Entry& entry : node_.entries) {
      if (!names.empty() && std::find(names.begin(), names.end(), entry.key) == names.end()) {
        context_.diagnostics.error(entry.key_mark,
                                   fmt::format("{}: `{}` is not one of {}", path_, entry.key, list_of(names)),
                                   did_you_mean(nearest(entry.key, names)));
        continue;
      }
      ValueReader reader(entry.value, join(path_, entry.key), context_);
      value.add(entry.key).accept(reader, element_info);
    }
  }

  void structure(StructRef& value, const FieldInfo& info) override;

 private:
  static std::string did_you_mean(const std::string& name) {
    return name.empty() ? "" : fmt::format("did you mean `{}`?", name);
  }

  void error(std::string message, std::string help = {}) {
    context_.diagnostics.error(node_.mark, std::move(message), std::move(help));
  }

  void fail_scalar(const yaml::ScalarError& e) { error(fmt::format("{}: {}", path_, e.message), e.help); }

  template <class T>
  void number_in_range(const yaml::Parsed<T>& parsed, T& value, const FieldInfo& info) {
    if (const auto* scalar_error = std::get_if<yaml::ScalarError>(&parsed)) return fail_scalar(*scalar_error);
    const T read = std::get<T>(parsed);
    if (!in_range(static_cast<double>(read), info)) {
      return error(fmt::format("{}: {} is out of range", path_, node_.text), "it must be " + range_of(info));
    }
    if constexpr (std::is_same_v<T, double>) {
      if (std::string help = float32_error(read, info); !help.empty()) {
        return error(fmt::format("{}: {} is out of the range of float32", path_, node_.text),
                     std::move(help));
      }
    }
    value = read;
  }

  const yaml::Node& node_;
  std::string path_;
  Context& context_;
};

// Sets the kind of a struct, so that its further fields are those of the kind; reads nothing else.
class KindReader final : public FieldVisitor {
 public:
  KindReader(const yaml::Node* node, std::string path, Context& context)
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
      ValueReader reader(*node_, join(path_, "kind"), context_);
      reader.text(member, info);
      failed_ = context_.diagnostics.num_errors() > before;
    }
    kind_ = member;
  }

 private:
  const yaml::Node* node_;
  std::string path_;
  Context& context_;
  bool has_kind_ = false;
  bool failed_ = false;
  std::string kind_;
  std::vector<std::string> choices_;
};

// Reads the one field that a plain value stands for.
class ShorthandReader final : public FieldVisitor {
 public:
  ShorthandReader(const yaml::Node& node, std::string path, Context& context)
      : node_(node), path_(std::move(path)), context_(context) {}
  bool found() const { return found_; }

 protected:
  void on_field(std::string_view, const ValueRef& value, const FieldInfo& info) override {
    if (!info.shorthand) return;
    found_ = true;
    ValueReader reader(node_, path_, context_);
    value.accept(reader, info);
  }
  void on_kind(std::string&, const FieldInfo&) override {}

 private:
  const yaml::Node& node_;
  std::string path_;
  Context& context_;
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
  MappingReader(const yaml::Node& node, std::string path, const KindReader& kind, Context& context)
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
      ValueReader reader(*child, join(path_, name), context_);
      value.accept(reader, info);
    } else if (info.required) {
      context_.diagnostics.error(node_.mark, fmt::format("{} needs the key `{}`", where(path_), name),
                                 info.help);
    }
  }

  void on_kind(std::string& member, const FieldInfo&) override { member = kind_.kind_name(); }

  void on_violation(std::string_view path, std::string_view message) override {
    if (context_.diagnostics.num_errors() > errors_before_) return;
    context_.diagnostics.error(mark_of(path), fmt::format("{}: {}", join(path_, path), message));
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
    if (help.empty()) {
      const std::string near = nearest(entry.key, known_);
      help = near.empty() ? "known here: " + list_of(known_) : fmt::format("did you mean `{}`?", near);
    }
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
  Context& context_;
  std::size_t errors_before_;
  std::vector<std::string> known_;
};

void ValueReader::structure(StructRef& value, const FieldInfo& /*info*/) {
  if (!node_.is_mapping()) {
    if (!node_.is_null()) {
      ShorthandReader shorthand(node_, path_, context_);
      value.fields(shorthand);
      if (shorthand.found()) return;
    }
    KindReader kind(node_.is_scalar() ? &node_ : nullptr, path_, context_);
    value.fields(kind);
    if (kind.failed()) return;
    if (!node_.is_scalar() || !kind.has_kind()) {
      return error(fmt::format("{} must be a mapping, not {}", where(path_), yaml::describe(node_)));
    }
    yaml::Node nothing = yaml::Node::mapping();
    nothing.mark = node_.mark;
    MappingReader reader(nothing, path_, kind, context_);
    value.fields(reader);
    return;
  }
  KindReader kind(node_.find("kind"), path_, context_);
  value.fields(kind);
  if (kind.failed()) return;
  MappingReader reader(node_, path_, kind, context_);
  value.fields(reader);
  reader.check_keys(value);
}

}  // namespace

void read_value(const yaml::Node& node, const ValueRef& value, const FieldInfo& info, const std::string& path,
                Diagnostics& diagnostics, const ReaderOptions& options) {
  Context context{diagnostics, options};
  ValueReader reader(node, path, context);
  value.accept(reader, info);
}

}  // namespace moelab

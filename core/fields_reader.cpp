#include "core/fields_reader.hpp"

#include "core/error.hpp"
#include "core/field_range.hpp"
#include "core/fields_structure.hpp"
#include "core/suggest.hpp"
#include "core/visible.hpp"
#include "core/yaml_scalar.hpp"

#include <algorithm>
#include <type_traits>

namespace moelab {

namespace {

class ValueReader final : public ValueVisitor {
 public:
  ValueReader(const yaml::Node& node, std::string path, ReadContext& context)
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
                   did_you_mean(node_.text, choices, ""));
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
                                   did_you_mean(entry.key, names, ""));
        continue;
      }
      ValueReader reader(entry.value, join_path(path_, entry.key), context_);
      value.add(entry.key).accept(reader, element_info);
    }
  }

  void structure(StructRef& value, const FieldInfo& /*info*/) override {
    read_structure(node_, path_, value, context_);
  }

 private:
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
  ReadContext& context_;
};

}  // namespace

void read_value(const yaml::Node& node, const ValueRef& value, const FieldInfo& info, const std::string& path,
                Diagnostics& diagnostics, const ReaderOptions& options) {
  ReadContext context{diagnostics, options};
  read_value(node, path, value, info, context);
}

void read_value(const yaml::Node& node, const std::string& path, const ValueRef& value, const FieldInfo& info,
                ReadContext& context) {
  ValueReader reader(node, path, context);
  value.accept(reader, info);
}

void read_text(const yaml::Node& node, const std::string& path, std::string& value, const FieldInfo& info,
               ReadContext& context) {
  ValueReader(node, path, context).text(value, info);
}

}  // namespace moelab

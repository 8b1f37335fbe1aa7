#include "core/fields_describe.hpp"

#include "core/fields_writer.hpp"

#include <algorithm>

namespace moelab {

namespace {

using Type = Description::Type;

class ValueDescriber final : public ValueVisitor {
 public:
  Description result;

  void boolean(bool&, const FieldInfo& info) override { leaf(Type::boolean, info); }
  void integer(std::int64_t&, const FieldInfo& info) override { leaf(Type::integer, info); }
  void number(double&, const FieldInfo& info) override { leaf(Type::number, info); }
  void text(std::string&, const FieldInfo& info) override { leaf(Type::text, info); }
  void node(yaml::Node&, const FieldInfo& info) override { leaf(Type::any, info); }

  void optional(OptionalRef& value, const FieldInfo& info) override {
    value.prototype().accept(*this, info);
    result.optional = true;
  }
  void list(ListRef& value, const FieldInfo& info) override {
    leaf(Type::list, info);
    result.element = {describe_value(value.prototype(), info)};
  }
  void named(NamedRef& value, const FieldInfo& info) override {
    leaf(Type::named, info);
    FieldInfo element_info = info;
    element_info.choices.clear();
    result.element = {describe_value(value.prototype(), element_info)};
  }
  void structure(StructRef& value, const FieldInfo& info) override;

 private:
  void leaf(Type type, const FieldInfo& info) {
    result.type = type;
    result.info = info;
  }
};

// Collects the fields of a struct, as it is or as another kind.
class FormDescriber final : public FieldVisitor {
 public:
  explicit FormDescriber(const std::string* kind) : kind_(kind) {}
  std::vector<Description::Field> fields;
  std::string own_kind;
  FieldInfo kind_info;
  bool has_kind = false;

 protected:
  void on_field(std::string_view name, const ValueRef& value, const FieldInfo& info) override {
    fields.push_back({std::string(name), describe_value(value, info)});
  }
  void on_kind(std::string& member, const FieldInfo& info) override {
    has_kind = true;
    own_kind = member;
    kind_info = info;
    if (kind_ != nullptr) member = *kind_;
  }

 private:
  const std::string* kind_;
};

void ValueDescriber::structure(StructRef& value, const FieldInfo& info) {
  leaf(Type::structure, info);
  FormDescriber own(nullptr);
  value.fields(own);
  if (!own.has_kind) {
    result.forms = {{"", std::move(own.fields)}};
    return;
  }
  result.default_kind = own.own_kind;
  result.kind_info = own.kind_info;
  for (const std::string& kind : own.kind_info.choices) {
    FormDescriber form(&kind);
    value.fields(form);
    result.forms.push_back({kind, std::move(form.fields)});
  }
  FormDescriber back(&result.default_kind);
  value.fields(back);
}

void collect_paths(const Description& d, const std::string& path, std::vector<std::string>& out) {
  const auto add = [&](const std::string& p) {
    if (std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
  };
  if (!path.empty()) add(path);
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const Description& element : d.element) {
    if (d.type == Type::list) collect_paths(element, path, out);
    if (d.type != Type::named) continue;
    const std::vector<std::string> any = {"<name>"};
    for (const std::string& name : d.info.choices.empty() ? any : d.info.choices) {
      collect_paths(element, prefix + name, out);
    }
  }
  if (!d.default_kind.empty()) add(prefix + "kind");
  for (const Description::Form& form : d.forms) {
    for (const Description::Field& field : form.fields) {
      collect_paths(field.description, prefix + field.name, out);
    }
  }
}

}  // namespace

Description describe_value(const ValueRef& value, const FieldInfo& info) {
  ValueDescriber describer;
  value.accept(describer, info);
  describer.result.default_value = write_value(value);
  return std::move(describer.result);
}

std::vector<std::string> field_paths(const Description& description) {
  std::vector<std::string> out;
  collect_paths(description, "", out);
  return out;
}

}  // namespace moelab

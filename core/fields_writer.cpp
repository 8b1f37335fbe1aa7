#include "core/fields_writer.hpp"

#include "core/error.hpp"

namespace moelab {

namespace {

class ValueWriter final : public ValueVisitor {
 public:
  yaml::Node result;

  void boolean(bool& value, const FieldInfo&) override {
    result = yaml::Node::scalar(value ? "true" : "false");
  }
  void integer(std::int64_t& value, const FieldInfo&) override {
    result = yaml::Node::scalar(fmt::format("{}", value));
  }
  void number(double& value, const FieldInfo&) override {
    result = yaml::Node::scalar(yaml::number_text(value));
  }
  void text(std::string& value, const FieldInfo&) override { result = yaml::Node::scalar(value, true); }
  void node(yaml::Node& value, const FieldInfo&) override { result = value; }

  void optional(OptionalRef& value, const FieldInfo& info) override {
    result = yaml::Node();
    if (value.has_value()) value.value().accept(*this, info);
  }

  void list(ListRef& value, const FieldInfo&) override {
    yaml::Node list = yaml::Node::list();
    for (std::size_t i = 0; i < value.size(); ++i) list.items.push_back(write_value(value.element(i)));
    result = std::move(list);
  }

  void named(NamedRef& value, const FieldInfo&) override {
    yaml::Node mapping = yaml::Node::mapping();
    for (std::size_t i = 0; i < value.size(); ++i) mapping.set(value.name(i), write_value(value.element(i)));
    result = std::move(mapping);
  }

  void structure(StructRef& value, const FieldInfo&) override;
};

class MappingWriter final : public FieldVisitor {
 public:
  yaml::Node mapping = yaml::Node::mapping();

 protected:
  void on_field(std::string_view name, const ValueRef& value, const FieldInfo&) override {
    mapping.set(name, write_value(value));
  }
  void on_kind(std::string& member, const FieldInfo&) override {
    mapping.set("kind", yaml::Node::scalar(member, true));
  }
};

void ValueWriter::structure(StructRef& value, const FieldInfo&) {
  MappingWriter writer;
  value.fields(writer);
  result = std::move(writer.mapping);
}

}  // namespace

yaml::Node write_value(const ValueRef& value) {
  ValueWriter writer;
  value.accept(writer, {});
  return std::move(writer.result);
}

}  // namespace moelab

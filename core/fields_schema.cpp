#include "core/fields_describe.hpp"

#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace moelab {

namespace {

using Json = nlohmann::ordered_json;
using Type = Description::Type;

// Numbers that YAML readers take for text (1e-4 and 3_000_000 in some) and ${...}.
constexpr const char* kNumberPattern = R"(^([-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\$\{[^}]+\})$)";
constexpr const char* kReferencePattern = R"(^\$\{[^}]+\}$)";

Json schema_of(const Description& d);

std::string text_of(const FieldInfo& info) {
  return info.unit.empty() ? info.help : fmt::format("{} ({})", info.help, info.unit);
}

Json any_of(std::vector<Json> alternatives) {
  if (alternatives.size() == 1) return std::move(alternatives.front());
  return Json{{"anyOf", std::move(alternatives)}};
}

Json number_schema(const char* type, const FieldInfo& info) {
  Json number = {{"type", type}};
  const auto bound = [&](const char* name, double value) {
    if (!std::isfinite(value)) return;
    if (std::nearbyint(value) == value && std::abs(value) < 1e15) {
      number[name] = static_cast<std::int64_t>(value);
    } else {
      number[name] = value;
    }
  };
  bound(info.min_exclusive ? "exclusiveMinimum" : "minimum", info.min);
  bound(info.max_exclusive ? "exclusiveMaximum" : "maximum", info.max);
  return any_of({number, Json{{"type", "string"}, {"pattern", kNumberPattern}}});
}

Json text_schema(const FieldInfo& info) {
  if (info.choices.empty()) return Json{{"type", {"string", "number", "boolean"}}};
  return any_of({Json{{"enum", info.choices}}, Json{{"type", "string"}, {"pattern", kReferencePattern}}});
}

Json object_schema(const Description& d, const Description::Form& form) {
  Json properties = Json::object();
  Json required = Json::array();
  if (!form.kind.empty()) {
    properties["kind"] = {{"const", form.kind}, {"description", d.kind_info.help}};
    if (form.kind != d.default_kind) required.push_back("kind");
  }
  for (const Description::Field& field : form.fields) {
    properties[field.name] = schema_of(field.description);
    if (field.description.info.required) required.push_back(field.name);
  }
  Json out = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = required;
  return out;
}

// What may stand for a whole struct: its kind, or the field marked as shorthand.
std::optional<Json> shorthand_schema(const Description& d) {
  for (const Description::Form& form : d.forms) {
    for (const Description::Field& field : form.fields) {
      if (field.description.info.shorthand) return schema_of(field.description);
    }
  }
  if (d.default_kind.empty()) return std::nullopt;
  return Json{{"enum", d.kind_info.choices}};
}

Json structure_schema(const Description& d) {
  std::vector<Json> alternatives;
  for (const Description::Form& form : d.forms) alternatives.push_back(object_schema(d, form));
  if (const std::optional<Json> shorthand = shorthand_schema(d)) alternatives.push_back(*shorthand);
  return any_of(std::move(alternatives));
}

Json named_schema(const Description& d) {
  const Json element = schema_of(d.element.front());
  if (d.info.choices.empty()) return {{"type", "object"}, {"additionalProperties", element}};
  Json properties = Json::object();
  for (const std::string& name : d.info.choices) properties[name] = element;
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Json list_schema(const Description& d) {
  const Json element = schema_of(d.element.front());
  const Json list = {{"type", "array"}, {"items", element}};
  return d.info.one_or_list ? any_of({list, element}) : list;
}

Json value_schema(const Description& d) {
  switch (d.type) {
    case Type::boolean:
      return any_of({Json{{"type", "boolean"}}, Json{{"type", "string"}, {"pattern", kReferencePattern}}});
    case Type::integer:
      return number_schema("integer", d.info);
    case Type::number:
      return number_schema("number", d.info);
    case Type::text:
      return text_schema(d.info);
    case Type::list:
      return list_schema(d);
    case Type::named:
      return named_schema(d);
    case Type::structure:
      return structure_schema(d);
    case Type::any:
      break;
  }
  return Json::object();
}

std::optional<Json> default_of(const Description& d) {
  const yaml::Node& value = d.default_value;
  if (d.info.required || !value.is_scalar()) return std::nullopt;
  if (value.quoted) return value.text.empty() ? std::nullopt : std::optional<Json>(value.text);
  if (d.type == Type::integer) return Json(std::stoll(value.text));
  if (d.type == Type::number) return Json(std::stod(value.text));
  return Json(value.text == "true");
}

Json schema_of(const Description& d) {
  Json out = value_schema(d);
  if (d.optional) out = any_of({out, Json{{"type", "null"}}});
  if (!d.info.help.empty()) out["description"] = text_of(d.info);
  if (const std::optional<Json> value = default_of(d)) out["default"] = *value;
  return out;
}

// Moves what stands in several places of a schema into `definitions`, for a shorter file.
class Sharing {
 public:
  explicit Sharing(Json& schema) {
    count(schema);
    for_each_part(schema, [&](Json& part) { replace(part); });
    if (!definitions_.empty()) schema["definitions"] = definitions_;
  }

 private:
  static constexpr std::size_t kWorthSharing = 300;  // bytes

  // The schemas inside a schema.
  template <class J, class F>
  static void for_each_part(J& schema, const F& f) {
    for (const char* key : {"properties", "anyOf"}) {
      if (!schema.contains(key)) continue;
      for (J& part : schema[key]) f(part);
    }
    for (const char* key : {"items", "additionalProperties"}) {
      if (schema.contains(key) && schema[key].is_object()) f(schema[key]);
    }
  }

  void count(const Json& schema) {
    const std::string text = schema.dump();
    if (text.size() >= kWorthSharing && ++uses_[text] > 1) return;
    for_each_part(schema, [&](const Json& part) { count(part); });
  }

  void replace(Json& schema) {
    const std::string text = schema.dump();
    const auto used = uses_.find(text);
    if (used == uses_.end() || used->second < 2) {
      for_each_part(schema, [&](Json& part) { replace(part); });
      return;
    }
    if (names_.find(text) == names_.end()) {
      names_[text] = fmt::format("part{}", names_.size() + 1);
      for_each_part(schema, [&](Json& part) { replace(part); });
      definitions_[names_[text]] = schema;
    }
    schema = {{"$ref", "#/definitions/" + names_[text]}};
  }

  std::map<std::string, int> uses_;
  std::map<std::string, std::string> names_;
  Json definitions_ = Json::object();
};

}  // namespace

std::string default_json(const Description& description) {
  const std::optional<Json> value = default_of(description);
  return value ? value->dump() : "";
}

std::string json_schema(const Description& description, const std::string& title) {
  Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  out.update(schema_of(description));
  Sharing share(out);
  return out.dump(1) + '\n';
}

}  // namespace moelab

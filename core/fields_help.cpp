#include "core/field_range.hpp"
#include "core/fields_describe.hpp"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

using Type = Description::Type;

std::string bounds_of(const FieldInfo& info) {
  std::vector<std::string> parts;
  if (std::isfinite(info.min)) parts.push_back((info.min_exclusive ? "> " : ">= ") + plain_number(info.min));
  if (std::isfinite(info.max)) parts.push_back((info.max_exclusive ? "< " : "<= ") + plain_number(info.max));
  return parts.empty() ? "" : " " + fmt::format("{}", fmt::join(parts, ", "));
}

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string type_text(const Description& d) {
  switch (d.type) {
    case Type::boolean:
      return "boolean";
    case Type::integer:
      return "integer" + bounds_of(d.info);
    case Type::number:
      return "number" + bounds_of(d.info);
    case Type::text:
      return d.info.choices.empty() ? "text" : fmt::format("`{}`", fmt::join(d.info.choices, "`, `"));
    case Type::list: {
      const std::string element = type_text(d.element.front());
      return d.info.one_or_list ? fmt::format("{}, or a list of them", element) : "list of " + element;
    }
    case Type::named:
      return "mapping from names";
    case Type::structure:
      return "block";
    case Type::any:
      break;
  }
  return "mapping";  // as all that is kept as it is written
}

std::string default_text(const Description& d) {
  if (d.info.required) return "**required**";
  if (d.default_value.is_null()) return d.info.when_absent.empty() ? "none" : d.info.when_absent;
  if (!d.default_kind.empty()) return fmt::format("kind `{}`", d.default_kind);
  const bool is_short = d.default_value.is_scalar() || d.type == Type::list;
  if (!is_short || (d.default_value.is_scalar() && d.default_value.text.empty())) return "";
  const bool is_text = d.default_value.is_scalar();
  std::string out = fmt::format("`{}`", is_text ? d.default_value.text : yaml::emit_flow(d.default_value));
  if (d.optional && !d.info.when_absent.empty()) out += fmt::format("; null: {}", d.info.when_absent);
  return out;
}

std::string field_table(const std::vector<Description::Field>& fields) {
  std::string out = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const Description::Field& field : fields) {
    const Description& d = field.description;
    const std::string unit = d.info.unit.empty() ? "" : fmt::format(", in {}", d.info.unit);
    out += fmt::format("| `{}` | {}{} | {} | {} |\n", field.name, cell(type_text(d)), unit,
                       cell(default_text(d)), cell(d.info.help));
  }
  return out;
}

}  // namespace moelab

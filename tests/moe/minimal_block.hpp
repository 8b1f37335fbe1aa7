// `ffn:` blocks with what a kind declares as required and nothing else, so that a new kind is tested as soon
// as it is registered.
#pragma once

#include "core/error.hpp"
#include "core/fields_describe.hpp"
#include "moe/config.hpp"

#include <string>

#include <fmt/format.h>

namespace moelab::moe {

inline const Description& field_of(const Description& d, const std::string& name) {
  for (const Description::Field& field : d.forms.front().fields) {
    if (field.name == name) return field.description;
  }
  throw Error("no field " + name);
}

// "kind: top_k, top_k: 2, normalize: false": what must be given, and nothing else. `count` is for integers.
inline std::string minimal(const Description& d, const std::string& kind, Index count) {
  std::string text = "kind: " + kind;
  for (const Description::Form& form : d.forms) {
    if (form.kind != kind) continue;
    for (const Description::Field& field : form.fields) {
      const Description& f = field.description;
      if (field.name == "normalize" && count == 1) text += ", normalize: false";
      if (!f.info.required) continue;
      const bool is_integer = f.type == Description::Type::integer;
      const std::string value = is_integer                            ? fmt::format("{}", count)
                                : f.type == Description::Type::number ? std::string("0.7")
                                                                      : f.info.choices.at(0);
      text += fmt::format(", {}: {}", field.name, value);
    }
  }
  return text;
}

inline std::string router_block(const std::string& kind, Index experts, Index top_k) {
  const Description d = describe_fields(MoeConfig{});
  return fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: {}, activation: swiglu, d_ff: 3}}\nrouter: {{{}}}\n", experts,
      minimal(field_of(d, "router"), kind, top_k));
}

}  // namespace moelab::moe

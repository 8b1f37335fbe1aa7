#include "experiments/config/kinds.hpp"

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/config/kind_sources.hpp"
#include "moe/registry.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace moelab {

namespace {

using Type = Description::Type;
using Fields = std::vector<Description::Field>;

const Description& field_of(const Description& d, std::string_view name) {
  for (const Description::Form& form : d.forms) {
    for (const Description::Field& field : form.fields) {
      if (field.name == name) return field.description;
    }
  }
  fail("[kinds] no field {}", name);
}

const Description& element_of(const Description& d) { return d.type == Type::list ? d.element.front() : d; }

// A block with one form is followed by its fields, or replaced by them where it is always there; others (an
// FFN, a list of layers) stay one row.
void add_opened(const Fields& fields, const std::string& prefix, Fields& out) {
  for (const Description::Field& field : fields) {
    const Description& d = field.description;
    const bool is_opened = d.type == Type::structure && d.default_kind.empty();
    if (!is_opened || d.optional) out.push_back({prefix + field.name, d});
    if (is_opened) add_opened(d.forms.front().fields, prefix + field.name + ".", out);
  }
}

Fields opened(const Fields& fields) {
  Fields out;
  add_opened(fields, "", out);
  return out;
}

KnownKind kind_of(const std::string& part, const std::string& name, const std::string& help, Fields fields) {
  KnownKind kind{name, help, "", std::move(fields)};
  for (const KindSource& source : kind_sources()) {
    if (source.part != part || source.name != name) continue;
    if (!source.help.empty()) kind.help = source.help;
    kind.source = source.source;
  }
  return kind;
}

// The kinds of a block that has a field `kind`.
KnownPart part_of_forms(std::string name, std::string key, const Description& d) {
  KnownPart part{std::move(name), std::move(key), d.default_kind, {}};
  for (const Description::Form& form : d.forms) {
    part.kinds.push_back(kind_of(part.name, form.kind, d.kind_info.help, opened(form.fields)));
  }
  return part;
}

// The same where help and source stand in a registry.
template <class Options>
KnownPart part_of_table(std::string name, std::string key, const Description& d,
                        const moe::KindTable<Options>& table) {
  KnownPart part = part_of_forms(std::move(name), std::move(key), d);
  for (KnownKind& kind : part.kinds) {
    kind.help = table.find(kind.name).help;
    kind.source = table.find(kind.name).source;
  }
  return part;
}

// The values that a plain field may have.
KnownPart part_of_choices(std::string name, std::string key, const Description& d) {
  KnownPart part{std::move(name), std::move(key), d.info.required ? "" : d.default_value.text, {}};
  for (const std::string& choice : d.info.choices) {
    part.kinds.push_back(kind_of(part.name, choice, d.info.help, {}));
  }
  return part;
}

// The losses stand side by side, as names of a mapping.
KnownPart part_of_losses(const Description& d) {
  KnownPart part{"loss", "model.ffn.losses", "", {}};
  for (const Description::Field& field : d.forms.front().fields) {
    part.kinds.push_back(kind_of(part.name, field.name, field.description.info.help,
                                 opened(field.description.forms.front().fields)));
  }
  return part;
}

// Markdown's marks taken out.
std::string plain(std::string text) {
  std::erase_if(text, [](char c) { return c == '`' || c == '*'; });
  return text;
}

nlohmann::ordered_json json_of(const Description::Field& field) {
  const Description& d = field.description;
  nlohmann::ordered_json json{
      {"name", field.name}, {"type", plain(type_text(d))}, {"required", d.info.required}};
  const std::string value = default_json(d);
  if (!value.empty()) json["default"] = nlohmann::ordered_json::parse(value);
  if (value.empty() && !d.info.required) json["default"] = nullptr;
  if (!d.info.when_absent.empty()) json["when_absent"] = d.info.when_absent;
  if (!d.info.choices.empty()) json["choices"] = d.info.choices;
  json["unit"] = d.info.unit;
  json["help"] = d.info.help;
  return json;
}

std::string fields_text(const Fields& fields) {
  struct Row {
    std::string name, type, value, help;
  };
  std::vector<Row> rows;
  std::size_t widths[3] = {0, 0, 0};
  for (const Description::Field& field : fields) {
    const Description& d = field.description;
    std::string value = plain(default_text(d));
    if (!d.info.unit.empty()) value += (value.empty() ? "" : " ") + fmt::format("[{}]", d.info.unit);
    rows.push_back({field.name, plain(type_text(d)), std::move(value), d.info.help});
    widths[0] = std::max(widths[0], rows.back().name.size());
    widths[1] = std::max(widths[1], rows.back().type.size());
    widths[2] = std::max(widths[2], rows.back().value.size());
  }
  std::string out;
  for (const Row& row : rows) {
    out += fmt::format("    {:{}}  {:{}}  {:{}}  {}\n", row.name, widths[0], row.type, widths[1], row.value,
                       widths[2], row.help);
  }
  return out;
}

}  // namespace

std::vector<KnownPart> known_parts() {
  const Description mixture = describe_fields(moe::MoeConfig{});
  const Description& expert = element_of(field_of(mixture, "experts"));
  const Description& router = field_of(mixture, "router");
  const Description train = describe_fields(TrainConfig{});
  const Description data = describe_fields(DataConfig{});
  return {
      part_of_table("router", "model.ffn.router.kind", router, moe::router_kinds()),
      part_of_table("expert", "model.ffn.experts.kind", expert, moe::expert_kinds()),
      part_of_losses(field_of(mixture, "losses")),
      part_of_choices("activation", "model.ffn.experts.activation", field_of(expert, "activation")),
      part_of_choices("score", "model.ffn.router.score", field_of(router, "score")),
      part_of_choices("projection", "model.ffn.router.projection", field_of(router, "projection")),
      part_of_choices("drop", "model.ffn.capacity.drop", field_of(field_of(mixture, "capacity"), "drop")),
      part_of_forms("ffn", "model.ffn.kind", describe_fields(moe::FfnConfig{})),
      part_of_forms("model", "model.kind", describe_fields(ModelConfig{})),
      part_of_forms("data", "data.kind", data),
      part_of_forms("tokenizer", "data.tokenizer", field_of(data, "tokenizer")),
      part_of_forms("optimizer", "train.optimizer.kind", field_of(train, "optimizer")),
      part_of_forms("schedule", "train.schedule.kind", field_of(train, "schedule")),
  };
}

std::vector<KnownPart> known_parts(std::string_view name) {
  std::vector<KnownPart> found;
  std::vector<std::string> names;
  for (KnownPart& part : known_parts()) {
    names.push_back(part.name);
    for (const KnownKind& kind : part.kinds) names.push_back(kind.name);
    if (part.name != name) std::erase_if(part.kinds, [&](const KnownKind& k) { return k.name != name; });
    if (!part.kinds.empty()) found.push_back(std::move(part));
  }
  if (!found.empty()) return found;
  throw ConfigError(fmt::format("there is no part and no kind `{}`; {}", name,
                                did_you_mean(name, names, "`moelab kinds` lists them all")));
}

std::string kinds_text(const std::vector<KnownPart>& parts) {
  std::string out;
  for (const KnownPart& part : parts) {
    out += fmt::format("{}{}: {}\n", out.empty() ? "" : "\n", part.name, part.key);
    for (const KnownKind& kind : part.kinds) {
      out += fmt::format("\n  {}{}: {}\n    source: {}\n", kind.name,
                         kind.name == part.default_kind ? " (default)" : "", kind.help, kind.source);
      out += fields_text(kind.fields);
    }
  }
  return out;
}

std::string kinds_json(const std::vector<KnownPart>& parts) {
  auto out = nlohmann::ordered_json::array();
  for (const KnownPart& part : parts) {
    nlohmann::ordered_json json{{"part", part.name}, {"key", part.key}};
    json["default"] =
        part.default_kind.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(part.default_kind);
    json["kinds"] = nlohmann::ordered_json::array();
    for (const KnownKind& kind : part.kinds) {
      nlohmann::ordered_json entry{{"name", kind.name}, {"help", kind.help}, {"source", kind.source}};
      entry["fields"] = nlohmann::ordered_json::array();
      for (const Description::Field& field : kind.fields) entry["fields"].push_back(json_of(field));
      json["kinds"].push_back(std::move(entry));
    }
    out.push_back(std::move(json));
  }
  return out.dump(1) + '\n';
}

}  // namespace moelab

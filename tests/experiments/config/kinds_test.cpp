// The list of kinds has everything that can stand in an experiment file, each with a source and all fields.
#include "experiments/config/kinds.hpp"

#include "core/error.hpp"
#include "core/fields_describe.hpp"
#include "core/ops/activation.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/kind_sources.hpp"
#include "moe/registry.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

using namespace moelab;

namespace {

const KnownPart& part_of(const std::vector<KnownPart>& parts, const std::string& name) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.name == name; });
  REQUIRE(found != parts.end());
  return *found;
}

const KnownKind& kind_of(const KnownPart& part, const std::string& name) {
  const auto found =
      std::find_if(part.kinds.begin(), part.kinds.end(), [&](const auto& k) { return k.name == name; });
  REQUIRE(found != part.kinds.end());
  return *found;
}

std::vector<std::string> names_of(const KnownPart& part) {
  std::vector<std::string> names;
  for (const KnownKind& kind : part.kinds) names.push_back(kind.name);
  return names;
}

bool has_field(const KnownKind& kind, const std::string& name) {
  return std::any_of(kind.fields.begin(), kind.fields.end(), [&](const auto& f) { return f.name == name; });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every kind has a line of help and a source", "[kinds]") {
  for (const KnownPart& part : known_parts()) {
    INFO(part.name);
    CHECK_FALSE(part.kinds.empty());
    for (const KnownKind& kind : part.kinds) {
      INFO(kind.name);
      CHECK_FALSE(kind.help.empty());
      CHECK_FALSE(kind.source.empty());
      for (const Description::Field& field : kind.fields) CHECK_FALSE(field.description.info.help.empty());
    }
  }
}

TEST_CASE("no source is of a kind that is not there", "[kinds]") {
  const std::vector<KnownPart> parts = known_parts();
  for (const KindSource& source : kind_sources()) {
    INFO(source.part << " " << source.name);
    CHECK(kind_of(part_of(parts, std::string(source.part)), std::string(source.name)).source ==
          source.source);
  }
}

TEST_CASE("the list is that of the registries and of the fields", "[kinds]") {
  const std::vector<KnownPart> parts = known_parts();
  CHECK(names_of(part_of(parts, "router")) == moe::router_kinds().names());
  CHECK(names_of(part_of(parts, "expert")) == moe::expert_kinds().names());
  CHECK(names_of(part_of(parts, "activation")) == ops::activation_names());
  // Every list of kinds of the experiment file is a part.
  const std::vector<std::string> paths = field_paths(describe_fields(WholeFile{}));
  for (const std::string& path : paths) {
    if (!path.ends_with(".kind") || path.find(".layers.") != std::string::npos) continue;
    INFO(path);
    CHECK(std::any_of(parts.begin(), parts.end(),
                      [&](const KnownPart& p) { return p.key == path || p.key + ".kind" == path; }));
  }
  // And every key is one of the file.
  for (const KnownPart& part : parts) {
    INFO(part.key);
    CHECK(std::find(paths.begin(), paths.end(), part.key) != paths.end());
  }
}

TEST_CASE("a kind has its own fields, blocks opened, with default and unit", "[kinds]") {
  const std::vector<KnownPart> parts = known_parts();
  const KnownKind& top_k = kind_of(part_of(parts, "router"), "top_k");
  for (const char* name : {"top_k", "score", "groups.count", "groups.keep", "expert_bias.rate", "jitter"}) {
    CHECK(has_field(top_k, name));
  }
  CHECK_FALSE(has_field(kind_of(part_of(parts, "router"), "soft"), "top_k"));
  CHECK(has_field(kind_of(part_of(parts, "router"), "soft"), "slots"));
  CHECK(part_of(parts, "router").default_kind == "top_k");
  const std::string text = kinds_text(known_parts("wsd"));
  CHECK(has(text, "schedule: train.schedule.kind"));
  CHECK(has(text, "[tokens]"));
  CHECK(has(text, "MiniCPM"));
  CHECK_FALSE(has(text, "cosine"));
}

TEST_CASE("the JSON has what the text has", "[kinds]") {
  const auto json = nlohmann::json::parse(kinds_json(known_parts("top_k")));
  REQUIRE(json.size() == 1);
  CHECK((json[0]["part"] == "router"));
  CHECK((json[0]["default"] == "top_k"));
  const auto& kind = json[0]["kinds"][0];
  CHECK((kind["name"] == "top_k"));
  for (const auto& field : kind["fields"]) {
    if (field["name"] == "top_k") CHECK((field["required"] == true));
    if (field["name"] == "scale") CHECK((field["default"] == 1.0));
    if (field["name"] == "normalize") CHECK((field["default"] == true));
    if (field["name"] == "score") CHECK((field["default"] == "softmax"));
  }
  CHECK(nlohmann::json::parse(kinds_json(known_parts())).size() == known_parts().size());
}

TEST_CASE("a part by its name is whole, and a wrong name is told with the near one", "[kinds]") {
  const std::vector<KnownPart> routers = known_parts("router");
  REQUIRE(routers.size() == 1);
  CHECK(names_of(routers.front()) == moe::router_kinds().names());
  CHECK_THROWS_AS(known_parts("top_kk"), ConfigError);
  try {
    known_parts("expert_choise");
  } catch (const ConfigError& e) {
    CHECK(has(e.what(), "did you mean `expert_choice`?"));
  }
}

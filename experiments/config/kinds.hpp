// Everything that a name in an experiment file chooses from: routers, experts, losses, activations, models,
// ... with the fields of each. Kinds that a program has registered itself are among them.
#pragma once

#include "core/fields_describe.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace moelab {

struct KnownKind {
  std::string name;
  std::string help;                        // one line
  std::string source;                      // paper and equation, or where the idea is from
  std::vector<Description::Field> fields;  // blocks inside are opened: `groups.count`
};

// The kinds of one part of an experiment.
struct KnownPart {
  std::string name;          // router, expert, loss, ...
  std::string key;           // where the name stands: model.ffn.router.kind
  std::string default_kind;  // empty: none
  std::vector<KnownKind> kinds;
};

std::vector<KnownPart> known_parts();

// Only what is called `name`: a part with all its kinds, or the kind of that name, in each part that has one.
// ConfigError with a suggestion where there is none.
std::vector<KnownPart> known_parts(std::string_view name);

// For a terminal: of every kind its help, source and fields.
std::string kinds_text(const std::vector<KnownPart>& parts);
// The same as JSON: a list of parts.
std::string kinds_json(const std::vector<KnownPart>& parts);

}  // namespace moelab

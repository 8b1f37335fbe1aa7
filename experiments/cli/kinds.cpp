#include "experiments/config/kinds.hpp"

#include "experiments/cli/command.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_kinds(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand(
      "kinds",
      "List the routers, experts, losses, activations, ... there are: fields, defaults, units, sources");
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("name", *name, "One kind (top_k), or one part (router) with all its kinds");
  command->add_flag("--json", *json, "As JSON");
  command->callback([name, json] {
    const std::vector<KnownPart> parts = name->empty() ? known_parts() : known_parts(*name);
    fmt::print("{}", *json ? kinds_json(parts) : kinds_text(parts));
  });
}

}  // namespace moelab::cli

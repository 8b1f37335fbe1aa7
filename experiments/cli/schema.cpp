#include "experiments/config/schema.hpp"

#include "experiments/cli/command.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_schema(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand(
      "schema", "Print the JSON Schema (draft-07) of experiment files, for completion and checks in editors");
  command->footer(
      "Save it beside your experiments and start each with the line\n"
      "  # yaml-language-server: $schema=./moelab.schema.json");
  auto reference = std::make_shared<bool>(false);
  auto corpus = std::make_shared<bool>(false);
  command->add_flag("--corpus", *corpus, "The schema of corpus files instead");
  command->add_flag("--reference", *reference, "The fields of experiment files as Markdown tables instead")
      ->excludes("--corpus");
  command->callback([reference, corpus] {
    fmt::print("{}", *reference ? experiment_reference() : *corpus ? corpus_schema() : experiment_schema());
  });
}

}  // namespace moelab::cli

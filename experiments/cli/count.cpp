#include "experiments/accounting/count_files.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"

#include <memory>

#include <CLI/CLI.hpp>

namespace moelab::cli {

void add_count(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand(
      "count", "Parameters and compute of experiments and of published models, without a weight in memory");
  auto options = std::make_shared<CountOptions>();
  command
      ->add_option(
          "files", options->arguments,
          "Experiments (YAML; KEY=VALUE overrides go to them) and Hugging Face configs (JSON); several are "
          "shown relative to the first")
      ->required();
  command->add_option("--context", options->context, "Positions that attention looks at")
      ->check(CLI::Range(Index{1}, Index{1'000'000'000}));
  command->add_flag("--json", options->json, "Figures as JSON");
  command->callback([options] { print(count_files(*options)); });
}

}  // namespace moelab::cli

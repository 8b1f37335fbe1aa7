#include "experiments/cli/experiment_arguments.hpp"

#include "experiments/accounting/variants.hpp"
#include "experiments/cli/terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void ExperimentArguments::add_to(CLI::App& command) {
  command.add_option("experiment", file, "The experiment file (YAML)")->required();
  command.add_option("overrides", overrides, "KEY=VALUE, set in the base before variants are applied");
  command.add_option("--variant", selection.variants, "Only runs of this variant; may be given again")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--seed", selection.seeds, "Only runs with this seed; may be given again")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--point", selection.points, "Only runs of this sweep point; may be given again")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Experiment ExperimentArguments::load() const {
  LoadOptions options;
  options.overrides = overrides;
  options.solve_twin = solve_twin;
  Experiment experiment = load_experiment(file, options);
  select_runs(experiment, selection);
  const auto warn = [](const std::string& text) {
    fmt::print(stderr, "{}", paint_diagnostics(text, has_colour(stderr)));
  };
  for (const std::string& warning : experiment.warnings) warn(warning);
  for (const std::string& warning : comparability_warnings(experiment)) {
    warn(fmt::format("{}: warning: {}\n", experiment.file.string(), warning));
  }
  return experiment;
}

}  // namespace moelab::cli

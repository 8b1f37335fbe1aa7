#include "experiments/cli/experiment_arguments.hpp"

#include "core/error.hpp"
#include "experiments/accounting/variants.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/config/overridden.hpp"
#include "experiments/training/load_execution.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void ExperimentArguments::add_to(CLI::App& command) {
  command.add_option("experiment", file, "The experiment file (YAML)");
  command.add_option("overrides", overrides, "KEY=VALUE, set in the base before variants are applied");
  command.add_option("--variant", selection.variants, "Only runs of this variant; may be given again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--seed", selection.seeds, "Only runs with this seed; may be given again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--point", selection.points, "Only runs of this sweep point; may be given again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

Experiment ExperimentArguments::load_file(LoadOptions& options) const {
  if (execution.empty()) {
    if (file.empty()) throw ConfigError("no experiment file is given");
    Experiment experiment = load_experiment(file, options);
    for (const std::string& sentence : overrides_without_effect(experiment, options))
      experiment.warnings.push_back(fmt::format("{}: warning: {}\n", file, sentence));
    select_runs(experiment, selection);
    return experiment;
  }
  // There is no file then, and the first word is an override like the others.
  if (!file.empty()) options.overrides.insert(options.overrides.begin(), file);
  return load_execution(execution, options, selection);
}

Experiment ExperimentArguments::load() const {
  LoadOptions options;
  options.overrides = overrides;
  options.solve_twin = solve_twin;
  Experiment experiment = load_file(options);
  for (const std::string& warning : experiment.warnings) tell(warning);
  return experiment;
}

}  // namespace moelab::cli

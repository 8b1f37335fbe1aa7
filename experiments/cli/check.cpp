#include "experiments/cli/command.hpp"
#include "experiments/cli/experiment_arguments.hpp"
#include "experiments/cli/plan.hpp"
#include "experiments/cli/terminal.hpp"

#include <memory>

#include <CLI/CLI.hpp>

namespace moelab::cli {

void add_check(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Check an experiment file whole, list its runs and what they cost; nothing is trained or written");
  auto arguments = std::make_shared<ExperimentArguments>();
  arguments->add_to(*command);
  command->callback([arguments, &context] {
    const Experiment experiment = arguments->load();
    tell(memory_warning(experiment));
    if (!context.quiet) print(plan_of(experiment));
  });
}

}  // namespace moelab::cli

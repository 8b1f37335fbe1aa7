#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/results_path.hpp"
#include "experiments/training/progress.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace moelab::cli {

void add_show(CLI::App& app, Context& /*context*/) {
  struct Options {
    std::string file, run;
  };
  CLI::App* command =
      app.add_subcommand("show", "What is in a results file: runs, losses, health of the routing");
  auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "results.h5 or run.h5, or the folder of an execution or a run")
      ->required();
  command->add_option("--run", options->run, "One run in detail");
  command->callback([options] {
    const ResultsFile file(results_path(options->file));
    const std::size_t columns = columns_of(stdout, kAnyWidth);
    print(options->run.empty() ? describe_file(file, columns) : describe_run(file, options->run, columns));
  });
}

}  // namespace moelab::cli

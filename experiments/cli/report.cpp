#include "experiments/report/report.hpp"

#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_report(CLI::App& app, Context& context) {
  struct Options {
    std::string file, output = "report.html";
  };
  CLI::App* command = app.add_subcommand("report", "One self-contained HTML page of a results file");
  auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "results.h5 or run.h5")->required();
  command->add_option("-o,--output", options->output, "File to write")->capture_default_str();
  command->callback([options, &context] {
    report::write_report(options->output, ResultsFile(options->file));
    if (!context.quiet) tell(fmt::format("wrote {}\n", options->output));
  });
}

}  // namespace moelab::cli

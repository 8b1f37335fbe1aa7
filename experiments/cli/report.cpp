#include "experiments/report/report.hpp"

#include "experiments/cli/command.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/results_path.hpp"

#include <filesystem>
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
  command->add_option("FILE", options->file, "results.h5 or run.h5, or the folder of an execution or a run")
      ->required();
  command->add_option("-o,--output", options->output, "File to write, or a folder for report.html")
      ->capture_default_str();
  command->callback([options, &context] {
    const std::filesystem::path output = file_to_write(options->output, "report.html");
    report::write_report(output, ResultsFile(results_path(options->file)));
    if (!context.quiet) tell(fmt::format("wrote {}\n", output.string()));
  });
}

}  // namespace moelab::cli

#include "experiments/results/export.hpp"

#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/results_path.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_export(CLI::App& app, Context& context) {
  struct Options {
    std::string file, format = "csv", folder;
  };
  CLI::App* command = app.add_subcommand("export", "Results in the formats of other tools");
  auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "results.h5 or run.h5, or the folder of an execution or a run")
      ->required();
  command->add_option("--format", options->format, "csv, jsonl or tensorboard")->capture_default_str();
  command->add_option("-o,--output", options->folder, "Folder to write into")->required();
  command->callback([options, &context] {
    const std::string& format = options->format;
    if (format != "csv" && format != "jsonl" && format != "tensorboard")
      throw ConfigError(fmt::format("'{}' is no format; use csv, jsonl or tensorboard", format));
    const ResultsFile file(results_path(options->file));
    if (format == "csv") export_csv(file, options->folder);
    if (format == "jsonl") export_jsonl(file, options->folder);
    if (format == "tensorboard") export_tensorboard(file, options->folder);
    if (!context.quiet) tell(fmt::format("wrote {} runs to {}\n", file.runs().size(), options->folder));
  });
}

}  // namespace moelab::cli

#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/results_path.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

// The experiment is that of the first file that says one.
ExperimentInfo common_experiment(const std::vector<std::filesystem::path>& paths) {
  ExperimentInfo info;
  for (const auto& path : paths) {
    const ExperimentInfo other = ResultsFile(path).experiment();
    if (other.config_source.empty()) continue;
    if (info.config_source.empty()) info = other;
    require(info.config_source == other.config_source,
            "[merge] {} is of another experiment file than the files before it; `moelab compare` takes files "
            "of several",
            path.string());
  }
  if (info.name.empty()) info.name = "merged";
  return info;
}

}  // namespace

void add_merge(CLI::App& app, Context& context) {
  struct Options {
    std::vector<std::string> files;
    std::string output;
  };
  CLI::App* command = app.add_subcommand(
      "merge", "Joins runs of one experiment, from several machines, into one results file");
  auto options = std::make_shared<Options>();
  command
      ->add_option("FILES", options->files,
                   "run.h5 or results.h5 files, or the folders of runs or executions")
      ->required();
  command->add_option("-o,--output", options->output, "File to write, or a folder for results.h5")
      ->required();
  command->callback([options, &context] {
    const std::filesystem::path output = file_to_write(options->output, "results.h5");
    std::vector<std::filesystem::path> paths;
    for (const std::string& named : options->files) paths.push_back(results_path(named));
    write_results_file(output, common_experiment(paths), paths);
    if (!context.quiet) tell(fmt::format("wrote {}\n", output.string()));
  });
}

}  // namespace moelab::cli

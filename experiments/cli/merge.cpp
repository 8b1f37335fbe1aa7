#include "experiments/results/merge.hpp"

#include "experiments/cli/command.hpp"
#include "experiments/cli/output_file.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/results_path.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

void add_merge(CLI::App& app, Context& context) {
  struct Options {
    std::vector<std::string> files;
    std::string output;
    MergeOptions merge;
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
  command->add_option(
      "--baseline", options->merge.baseline,
      "Variant that others are compared with [default: that of the experiment, or the first]");
  command->add_option("--metric", options->merge.metric,
                      "What they are compared by [default: that of the experiment, or eval/loss]");
  command->callback([options, &context] {
    const std::filesystem::path output = file_to_write(options->output, "results.h5");
    std::vector<std::filesystem::path> paths;
    for (const std::string& named : options->files) paths.push_back(results_path(named));
    merge_results(paths, output, options->merge);
    if (context.quiet) return;
    tell(fmt::format("wrote {}\n", output.string()));
    tell(baseline_note(ResultsFile(output)));
  });
}

}  // namespace moelab::cli

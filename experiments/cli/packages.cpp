#include "experiments/cli/command.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/missing_data.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

// The packages of all text that is not there, sorted. Text without a package is told by the commands that
// need it.
std::set<std::string> missing_packages(const Experiment& experiment) {
  std::set<std::string> packages;
  for (const Run& run : experiment.runs) {
    for (const MissingData& missing : missing_data(run.config.data)) {
      if (!missing.package.empty()) packages.insert(missing.package);
    }
  }
  return packages;
}

void packages(const std::vector<std::string>& arguments) {
  const auto is_file = [](const std::string& argument) { return std::filesystem::is_regular_file(argument); };
  const auto file = std::find_if(arguments.begin(), arguments.end(), is_file);
  if (file == arguments.end()) return;
  LoadOptions load;
  load.look_for_data = false;
  load.solve_twin = [](RunConfig&, const RunConfig&, const std::string&) {};
  for (const std::string& argument : arguments) {
    if (!argument.starts_with('-') && argument.find('=') != std::string::npos)
      load.overrides.push_back(argument);
  }
  for (const std::string& package : missing_packages(load_experiment(*file, load)))
    fmt::print("{}\n", package);
}

}  // namespace

void add_packages(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand(
      "packages",
      "List the Debian packages of text that an experiment needs and that is not on this machine");
  command->footer(
      "Takes the arguments of `run` and `check`: the first that is a file is the experiment, KEY=VALUE "
      "overrides\n"
      "it, and the rest is left alone. The launcher asks this before it runs an experiment.");
  command->fallthrough(false);
  command->allow_extras();
  command->set_help_flag();  // `run --help` asks for no package
  command->callback([command] { packages(command->remaining()); });
}

}  // namespace moelab::cli

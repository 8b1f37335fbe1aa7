#include "experiments/cli/command.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/missing_data.hpp"
#include "experiments/results/run_store.hpp"

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

// The folder behind --resume; empty where there is none.
std::filesystem::path execution_in(const std::vector<std::string>& arguments) {
  const std::string option = "--resume";
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    if (argument->starts_with(option + "=")) return argument->substr(option.size() + 1);
    if (*argument == option && std::next(argument) != arguments.end()) return *std::next(argument);
  }
  return {};
}

// Without the command that the arguments are those of, which need not be named.
std::vector<std::string> after_command(std::vector<std::string> arguments) {
  const auto word = std::ranges::find_if(arguments, [](const auto& a) { return !a.starts_with('-'); });
  if (word != arguments.end() && (*word == "run" || *word == "check")) arguments.erase(word);
  return arguments;
}

void packages(const std::vector<std::string>& arguments) {
  LoadOptions load;
  std::filesystem::path file;
  if (const std::filesystem::path folder = execution_in(arguments); !folder.empty()) {
    const RunStore store = RunStore::open(folder);
    file = store.folder() / "experiment.yaml";
    load.folder = store.source_folder();
    load.overrides = store.record().overrides;
  } else {
    const auto is_file = [](const std::string& argument) {
      return std::filesystem::is_regular_file(argument);
    };
    const auto found = std::find_if(arguments.begin(), arguments.end(), is_file);
    if (found == arguments.end()) return;
    file = *found;
  }
  load.look_for_data = false;
  load.solve_twin = [](RunConfig&, const RunConfig&, const std::string&) { return std::string(); };
  for (const std::string& argument : arguments) {
    if (!argument.starts_with('-') && argument.find('=') != std::string::npos)
      load.overrides.push_back(argument);
  }
  for (const std::string& package : missing_packages(load_experiment(file, load)))
    fmt::print("{}\n", package);
}

}  // namespace

void add_packages(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand(
      "packages",
      "List the Debian packages of text that an experiment needs and that is not on this machine");
  command->footer(
      "Usage: moelab packages run|check ARGUMENTS, as these commands are called: the first argument that\n"
      "is a file is the experiment, or the execution that --resume names has it; KEY=VALUE overrides it,\n"
      "and the rest is left alone. The launcher asks this before it runs an experiment.");
  command->fallthrough(false);
  command->prefix_command();  // what stands behind the command that is asked for is not for this one
  command->callback([command] { packages(after_command(command->remaining())); });
}

}  // namespace moelab::cli

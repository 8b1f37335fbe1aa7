// The arguments that every command on an experiment file takes.
#pragma once

#include "experiments/config/experiment.hpp"
#include "experiments/config/select_runs.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace moelab::cli {

struct ExperimentArguments {
  std::string file;
  std::string execution;  // folder of an execution that is loaded instead of a file
  std::vector<std::string> overrides;
  RunSelection selection;

  // Adds FILE, KEY=VALUE..., --variant, --seed and --point. The command must not outlive this.
  void add_to(CLI::App& command);
  // The experiment with twins solved for, and of its runs the selected ones. Warnings go to stderr. Throws
  // ConfigError.
  Experiment load() const;

 private:
  Experiment load_file(LoadOptions& options) const;
};

}  // namespace moelab::cli

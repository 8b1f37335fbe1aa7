#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/describe.hpp"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace moelab::cli {

void add_ls(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand("ls", "The results below a folder");
  auto folder = std::make_shared<std::string>("runs");
  command->add_option("DIR", *folder, "Folder to look in")->capture_default_str();
  command->callback([folder] { print(list_results(*folder)); });
}

}  // namespace moelab::cli

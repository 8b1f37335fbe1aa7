#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/training/progress.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace moelab::cli {

namespace {

constexpr std::size_t kColumns = 120;  // where there is no terminal

}  // namespace

void add_ls(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand("ls", "The results below a folder");
  auto folder = std::make_shared<std::string>("runs");
  command->add_option("DIR", *folder, "Folder to look in")->capture_default_str();
  command->callback([folder] { print(list_results(*folder, columns_of(stdout, kColumns))); });
}

}  // namespace moelab::cli

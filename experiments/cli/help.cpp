#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/command_words.hpp"

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

void help(CLI::App& app, const std::vector<std::string>& words) {
  const CommandWords named = command_of(app, words);
  if (!named.next.empty())
    throw ConfigError(missing_command(named, named.name + " has no commands below it"));
  fmt::print(
      "{}", named.command->get_formatter()->make_help(named.command, named.name, CLI::AppFormatMode::Normal));
}

}  // namespace

void add_help(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand("help", "What a command does and takes, as its --help says it");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *words, "Which one; without any, all are listed");
  command->callback([words, &app] { help(app, *words); });
}

}  // namespace moelab::cli

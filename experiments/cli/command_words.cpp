#include "experiments/cli/command_words.hpp"

#include "core/suggest.hpp"
#include "core/visible.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

std::vector<CLI::App*> below(CLI::App& command) {
  return command.get_subcommands([](CLI::App*) { return true; });
}

// Whether the option, where a command below has it, takes the argument after it.
bool takes_value(CLI::App& command, const std::string& option) {
  return std::ranges::any_of(below(command), [&](const CLI::App* one) {
    const CLI::Option* known = one->get_option_no_throw(option);
    return known != nullptr && known->get_items_expected_min() > 0;
  });
}

}  // namespace

CommandWords command_of(CLI::App& app, const std::vector<std::string>& words) {
  CommandWords named{&app, app.get_name(), {}};
  for (const std::string& word : words) {
    const std::vector<CLI::App*> known = below(*named.command);
    const auto found =
        std::ranges::find_if(known, [&](const CLI::App* command) { return command->get_name() == word; });
    if (found == known.end()) {
      named.next = word;
      break;
    }
    named.command = *found;
    named.name += " " + word;
  }
  return named;
}

CommandWords parsed_command(CLI::App& app) {
  CommandWords named{&app, app.get_name(), {}};
  while (!named.command->get_subcommands().empty()) {
    named.command = named.command->get_subcommands().front();
    named.name += " " + named.command->get_name();
  }
  bool is_value = false;
  for (const std::string& argument : app.remaining(true)) {
    if (!is_value && !argument.starts_with('-')) {
      named.next = argument;
      break;
    }
    is_value = !is_value && takes_value(*named.command, argument);
  }
  return named;
}

std::string missing_command(const CommandWords& named, const std::string& said) {
  std::vector<std::string> known;
  for (const CLI::App* command : below(*named.command)) known.push_back(command->get_name());
  if (known.empty()) return said;
  if (named.next.empty()) return fmt::format("a command is missing: {}", list_of(known));
  const std::size_t program = named.name.find(' ');
  const std::string above = program == std::string::npos ? "" : named.name.substr(program + 1) + " ";
  const std::string near = nearest(named.next, known);
  return fmt::format(
      "there is no command `{}{}`; {}", above, visible_line(named.next),
      near.empty() ? "known: " + list_of(known) : fmt::format("did you mean `{}{}`?", above, near));
}

}  // namespace moelab::cli

// Which command the words of a command line mean.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace moelab::cli {

struct CommandWords {
  CLI::App* command;  // the program itself where no word names a command
  std::string name;   // "moelab bench layer"
  std::string next;   // the word after it; empty: none
};

// Follows the words down as far as each names a command below the one before it.
CommandWords command_of(CLI::App& app, const std::vector<std::string>& words);

// The same of the command line that the program has parsed, as far as it came. Options and their values are
// no words, those of the commands that could have followed neither.
CommandWords parsed_command(CLI::App& app);

// "there is no command `bench foo`; did you mean ...", or that one is missing, where the named command has
// commands below it. Otherwise `said`.
std::string missing_command(const CommandWords& named, const std::string& said);

}  // namespace moelab::cli

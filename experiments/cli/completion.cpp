#include "experiments/cli/command.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab::cli {

namespace {

struct Flag {
  std::string name;  // without dashes
  std::string help;
};

struct Subcommand {
  std::string name;
  std::string help;
  std::vector<Flag> flags;
  std::vector<std::string> below;  // names of its own subcommands
};

// What the parser itself knows, so that completion cannot fall behind.
std::vector<Subcommand> subcommands_of(CLI::App& app) {
  std::vector<Subcommand> out;
  const auto flags_of = [](CLI::App* command, std::vector<Flag>& flags) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const bool is_new =
            std::none_of(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == name; });
        if (is_new) flags.push_back({name, option->get_description()});
      }
    }
  };
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    Subcommand subcommand{command->get_name(), command->get_description(), {}, {}};
    flags_of(command, subcommand.flags);
    for (CLI::App* below : command->get_subcommands([](CLI::App*) { return true; })) {
      subcommand.below.push_back(below->get_name());
      flags_of(below, subcommand.flags);
    }
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (name != "help") subcommand.flags.push_back({name, option->get_description()});
      }
    }
    out.push_back(std::move(subcommand));
  }
  return out;
}

// For single-quoted words of bash, zsh and fish, where `:` and brackets mean something to zsh.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == ':' || c == '[' || c == ']' || c == '\n') {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

std::string bash(const std::vector<Subcommand>& commands) {
  std::string names;
  std::string cases;
  for (const Subcommand& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    std::string flags;
    for (const Flag& flag : command.flags) flags += (flags.empty() ? "--" : " --") + flag.name;
    cases +=
        fmt::format("    {}) words='{}' below='{}' ;;\n", command.name, flags, fmt::join(command.below, " "));
  }
  return "_moelab() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} command='' words='' below='' word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    if [[ $word != -* ]]; then command=$word; break; fi\n"
         "  done\n"
         "  case $command in\n"
         "    '') words='" +
         names + " --help --quiet' ;;\n" + cases +
         "  esac\n"
         "  COMPREPLY=()\n"
         "  if [[ -z $command || $current == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "  elif [[ -n $below && ${COMP_WORDS[COMP_CWORD-1]} == \"$command\" ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$below\" -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _moelab moelab ./moelab\n";
}

std::string zsh(const std::vector<Subcommand>& commands) {
  std::string names;
  std::string cases;
  for (const Subcommand& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, plain(command.help));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const Flag& flag : command.flags) cases += fmt::format(" '--{}[{}]'", flag.name, plain(flag.help));
    if (!command.below.empty()) {
      cases += fmt::format(" '2:{}:({})'", command.name, fmt::join(command.below, " "));
    }
    cases += " '*:file:_files' ;;\n";
  }
  return "#compdef moelab\n"
         "_moelab() {\n"
         "  local -a commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  case $words[2] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _moelab moelab\n";
}

std::string fish(const std::vector<Subcommand>& commands) {
  std::string out;
  for (const Subcommand& command : commands) {
    out += fmt::format("complete -c moelab -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                       plain(command.help));
    if (!command.below.empty()) {
      out += fmt::format("complete -c moelab -n '__fish_seen_subcommand_from {}' -f -a '{}'\n", command.name,
                         fmt::join(command.below, " "));
    }
    for (const Flag& flag : command.flags) {
      out += fmt::format("complete -c moelab -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n",
                         command.name, flag.name, plain(flag.help));
    }
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Context& /*context*/) {
  CLI::App* command =
      app.add_subcommand("completion", "Print what makes a shell complete commands and options");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "bash:  eval \"$(moelab completion bash)\"   (in ~/.bashrc)\n"
      "zsh:   moelab completion zsh > \"${fpath[1]}/_moelab\"\n"
      "fish:  moelab completion fish > ~/.config/fish/completions/moelab.fish");
  command->callback([shell, &app] {
    const std::vector<Subcommand> commands = subcommands_of(app);
    fmt::print("{}", *shell == "bash" ? bash(commands) : *shell == "zsh" ? zsh(commands) : fish(commands));
  });
}

}  // namespace moelab::cli

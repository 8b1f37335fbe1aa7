#include "experiments/cli/command.hpp"

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

// Text as troff takes it: nothing in it is a command.
std::string escaped(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_begins = c == '\n';
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

// "-o, --output TEXT", "experiment"
std::string usage_of(const CLI::Option& option) {
  std::string out;
  if (option.get_positional()) out = italic(option.get_name(true));
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "" : ", ") + bold("--" + name);
  if (!option.nonpositional() || option.get_items_expected_max() == 0) return out;
  return out + " " + italic(option.get_type_name());
}

std::string options_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (app.get_parent() != nullptr && option == app.get_help_ptr()) continue;  // said once for all
    out += fmt::format(".TP\n{}\n{}", usage_of(*option), escaped(option->get_description()));
    const std::string& value = option->get_default_str();
    if (!value.empty()) out += fmt::format(" (default {})", escaped(value));
    out += ".\n";
  }
  return out;
}

std::string synopsis_of(const CLI::App& command, const std::string& name) {
  std::string out = fmt::format("{} [{}]", bold("moelab " + name), italic("options"));
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string argument =
        italic(option->get_name(true)) + (option->get_items_expected_max() > 1 ? " ..." : "");
    out += option->get_required() ? " " + argument : " [" + argument + "]";
  }
  return out;
}

// The commands below an app, those below them after each.
std::string commands_of(CLI::App& app, const std::string& above) {
  std::string out;
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    const std::string name = above + command->get_name();
    out += fmt::format(".SS {}\n{}\n.PP\n{}.\n", escaped(name), synopsis_of(*command, name),
                       escaped(command->get_description()));
    out += options_of(*command);
    const std::string footer = command->get_footer();
    if (!footer.empty()) out += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(footer));
    out += commands_of(*command, name + " ");
  }
  return out;
}

// The page is made of what the parser itself knows, so it cannot fall behind.
std::string page_of(CLI::App& app) {
  std::string out =
      ".TH MOELAB 1 \"\" \"moelab\" \"User commands\"\n.SH NAME\n"
      "moelab \\- research on mixture\\-of\\-experts feed\\-forward networks\n"
      ".SH SYNOPSIS\n.B moelab\n[options]\n.I command\n[arguments]\n";
  out += fmt::format(".SH DESCRIPTION\n{}\n", escaped(app.get_description()));
  out += ".SH OPTIONS\nAll commands take these.\n" + options_of(app);
  out += ".SH COMMANDS\n" + commands_of(app, "");
  out += fmt::format(
      ".SH EXIT STATUS\n.TP\n{}\nDone.\n.TP\n{}\nFailed.\n.TP\n{}\nThe configuration or the command line is "
      "wrong.\n.TP\n{}\nSome runs failed or diverged.\n.TP\n{}\nA condition of {} "
      "held.\n.TP\n{}\nInterrupted, "
      "after a checkpoint.\n.TP\n{}\nThe reader of the output has seen enough.\n",
      kDone, kFailed, kUsage, kSomeRunsFailed, kFailIfHeld, bold("--fail-if"), kInterrupted, kReaderGone);
  out +=
      ".SH ENVIRONMENT\n.TP\n.B MOELAB_CACHE\nFolder where tokenised text is kept; none: nowhere.\n"
      ".TP\n.B XDG_CACHE_HOME\nWithout MOELAB_CACHE its subfolder moelab is used, else ~/.cache/moelab.\n"
      ".TP\n.B NO_COLOR\nSet to anything but nothing: no colours.\n";
  out +=
      ".SH FILES\n.TP\n.I runs/NAME/TIME/results.h5\nThe results of an experiment, in HDF5.\n"
      ".TP\n.I runs/NAME/TIME/RUN/metrics.jsonl\nThe journal of a run.\n";
  return out;
}

}  // namespace

void add_man(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page");
  command->footer("moelab man | man -l -");
  command->callback([&app] { fmt::print("{}", page_of(app)); });
}

}  // namespace moelab::cli

// Dispatches to the commands and turns what they throw into messages and exit statuses.
#include "experiments/cli/program.hpp"

#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/command_words.hpp"
#include "experiments/cli/terminal.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

int report(const std::string& message, int exit_code) {
  const std::string text = message.ends_with('\n') ? message : message + '\n';
  const std::string shown = text.find(": error: ") == std::string::npos ? "moelab: error: " + text : text;
  tell(shown);
  return exit_code;
}

// What is wrong with a command line, and where help is: of the command that it names, as far as it names one.
std::string usage_error(CLI::App& app, const CLI::ParseError& error) {
  const CommandWords named = parsed_command(app);
  const std::string look = fmt::format("`{} --help` lists what there is", named.name);
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  return fmt::format("{} ({})", is_missing ? missing_command(named, error.what()) : error.what(), look);
}

int run(int argc, char** argv, Context& context) {
  CLI::App app{
      "Research on mixture-of-experts feed-forward networks: one YAML file trains, one HDF5 file tells.",
      "moelab"};
  context.command_line = fmt::format("{}", fmt::join(argv, argv + argc, " "));
  app.add_flag("-q,--quiet", context.quiet, "Results and errors only");
  app.require_subcommand(1);
  app.fallthrough();
  add_bench(app, context);
  add_run(app, context);
  add_check(app, context);
  add_count(app, context);
  add_new(app, context);
  add_ls(app, context);
  add_show(app, context);
  add_compare(app, context);
  add_plot(app, context);
  add_report(app, context);
  add_export(app, context);
  add_kinds(app, context);
  add_merge(app, context);
  add_recover(app, context);
  add_packages(app, context);
  add_schema(app, context);
  add_version(app, context);
  add_completion(app, context);
  add_man(app, context);
  add_help(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(usage_error(app, e), kUsage);
  }
  return context.exit_code;
}

// What a command says may be all that is wanted of it: a full disk must not look like success.
void require_written() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot write");
}

int checked(int argc, char** argv, Context& context) {
  const int code = run(argc, argv, context);
  require_written();
  return code;
}

// A run that was interrupted was so whatever else goes wrong: Ctrl-C may end the reader of the output too.
int failed(const Context& context) { return context.exit_code == kInterrupted ? kInterrupted : kFailed; }

// A reader that has seen enough ends the program without a word, as the system ends others (SIGPIPE), but for
// what the runs have come to.
int end_without_output(const std::system_error& error, const Context& context) {
  if (error.code() != std::errc::broken_pipe)
    return report(fmt::format("standard output: {}", error.what()), failed(context));
  return context.exit_code == kDone ? kReaderGone : context.exit_code;
}

// Errors become messages, and everything an exit status.
int answered(int argc, char** argv, Context& context) {
  try {
    return checked(argc, argv, context);
  } catch (const ConfigError& e) {
    return report(e.what(), kUsage);
  } catch (const NonFiniteError& e) {
    return report(e.what(), kSomeRunsFailed);
  } catch (const std::bad_alloc&) {
    return report("not enough memory", failed(context));
  } catch (const std::system_error& e) {
    return std::ferror(stdout) != 0 ? end_without_output(e, context) : report(e.what(), failed(context));
  } catch (const std::exception& e) {
    return report(e.what(), failed(context));
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of a file's size fails, and is told, instead
  parallel::prepare_thread();
  Context context;
  const int code = answered(argc, argv, context);
  if (!context.last_words.empty()) tell(context.last_words);
  return code;
}

}  // namespace moelab::cli

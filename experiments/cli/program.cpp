// Dispatches to the commands and turns what they throw into messages and exit statuses.
#include "experiments/cli/program.hpp"

#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

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
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(fmt::format("{} (`moelab --help` lists what there is)", e.what()), kUsage);
  }
  return context.exit_code;
}

// What a command says may be all that is wanted of it: a full disk must not look like success.
void require_written() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  require(written, "standard output: cannot write: {}", std::strerror(errno));
}

int checked(int argc, char** argv, Context& context) {
  const int code = run(argc, argv, context);
  require_written();
  return code;
}

}  // namespace

int run_program(int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of a file's size fails, and is told, instead
  parallel::prepare_thread();
  Context context;
  try {
    return checked(argc, argv, context);
  } catch (const ConfigError& e) {
    return report(e.what(), kUsage);
  } catch (const NonFiniteError& e) {
    return report(e.what(), kSomeRunsFailed);
  } catch (const std::exception& e) {
    // Ctrl-C may end the reader of the output too: the run was interrupted all the same.
    return report(std::ferror(stdout) != 0 ? fmt::format("standard output: {}", e.what()) : e.what(),
                  context.exit_code == kInterrupted ? kInterrupted : kFailed);
  }
}

}  // namespace moelab::cli

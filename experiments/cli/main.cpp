// Dispatches to the commands and turns what they throw into messages and exit statuses.
#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

using namespace moelab;

namespace {

int report(const std::string& message, int exit_code) {
  const std::string text = message.ends_with('\n') ? message : message + '\n';
  const std::string shown = text.find(": error: ") == std::string::npos ? "moelab: error: " + text : text;
  fmt::print(stderr, "{}", cli::paint_diagnostics(shown, cli::has_colour(stderr)));
  return exit_code;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Research on mixture-of-experts feed-forward networks: one YAML file trains, one HDF5 file tells.",
      "moelab"};
  cli::Context context;
  context.command_line = fmt::format("{}", fmt::join(argv, argv + argc, " "));
  app.add_flag("-q,--quiet", context.quiet, "Results and errors only");
  app.require_subcommand(1);
  app.fallthrough();
  cli::add_bench(app, context);
  cli::add_run(app, context);
  cli::add_check(app, context);
  cli::add_count(app, context);
  cli::add_new(app, context);
  cli::add_ls(app, context);
  cli::add_show(app, context);
  cli::add_compare(app, context);
  cli::add_plot(app, context);
  cli::add_report(app, context);
  cli::add_export(app, context);
  cli::add_merge(app, context);
  cli::add_recover(app, context);
  cli::add_packages(app, context);
  cli::add_schema(app, context);
  cli::add_version(app, context);
  cli::add_completion(app, context);
  cli::add_man(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(fmt::format("{} (`moelab --help` lists what there is)", e.what()), cli::kUsage);
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  parallel::prepare_thread();
  try {
    return run(argc, argv);
  } catch (const ConfigError& e) {
    return report(e.what(), cli::kUsage);
  } catch (const NonFiniteError& e) {
    return report(e.what(), cli::kSomeRunsFailed);
  } catch (const std::exception& e) {
    return report(e.what(), cli::kFailed);
  }
}

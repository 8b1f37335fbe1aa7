#include "core/error.hpp"
#include "core/parallel.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/render.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/training/run_experiment.hpp"

#include <atomic>
#include <csignal>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

struct Options {
  std::string file;
  std::vector<std::string> overrides;
  std::string output_root = "runs";
  std::string resume;
  int threads = 0;
  Index jobs = 0;
};

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks the run to end after its step; the second ends the program at once.
extern "C" void request_stop(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

void run(const Options& options, Context& context) {
  LoadOptions load;
  load.overrides = options.overrides;
  // With --resume there is no file, and the first argument is an override too.
  if (!options.resume.empty() && !options.file.empty()) {
    load.overrides.insert(load.overrides.begin(), options.file);
  } else if (options.file.empty() && options.resume.empty()) {
    throw ConfigError("run: give an experiment file, or --resume with the folder of an execution");
  }
  const Experiment experiment =
      options.resume.empty() ? load_experiment(options.file, load) : load_execution(options.resume, load);
  for (const std::string& warning : experiment.warnings) {
    fmt::print(stderr, "{}", paint_diagnostics(warning, has_colour(stderr)));
  }
  parallel::set_threads(options.threads);
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);

  RunOptions run_options;
  run_options.output_root = options.output_root;
  run_options.resume = options.resume;
  run_options.jobs = options.jobs;
  run_options.quiet = context.quiet;
  run_options.command_line = context.command_line;
  run_options.stop_requested = [] { return stop_requested.load(); };
  const ExperimentOutcome outcome = run_experiment(experiment, run_options);

  fmt::print("{}", render(compare_file(ResultsFile(outcome.results)), TableFormat::table));
  for (const FailedRun& failed : outcome.failed) fmt::print("\n{}: {}\n", failed.name, failed.reason);
  fmt::print("\nresults  {}\nruns     {}\n", outcome.results.string(), outcome.folder.string());
  if (!outcome.failed.empty()) context.exit_code = kSomeRunsFailed;
  if (outcome.interrupted) context.exit_code = kInterrupted;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "run", "Train every run of an experiment file, record the results, and compare the variants");
  auto options = std::make_shared<Options>();
  command->add_option("experiment", options->file, "The experiment file (YAML)");
  command->add_option("overrides", options->overrides,
                      "KEY=VALUE, set in the base before variants are applied");
  command->add_option("-o,--output", options->output_root, "Folder for results")->capture_default_str();
  command->add_option("-j,--jobs", options->jobs, "Runs at a time; 0: as many as there are threads")
      ->check(CLI::Range(0, 4096));
  command->add_option("-t,--threads", options->threads, "Threads to use; 0: all that the machine grants")
      ->check(CLI::Range(0, 4096));
  command->add_option("--resume", options->resume,
                      "Folder of an execution (runs/<name>/<time> or latest): finish its runs instead");
  command->callback([options, &context] { run(*options, context); });
}

}  // namespace moelab::cli

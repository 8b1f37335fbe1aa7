#include "core/parallel.hpp"
#include "experiments/accounting/variants.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/experiment_arguments.hpp"
#include "experiments/cli/plan.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/render.hpp"
#include "experiments/data/cache_folder.hpp"
#include "experiments/report/report.hpp"
#include "experiments/training/progress.hpp"
#include "experiments/training/run_experiment.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

struct Options {
  ExperimentArguments arguments;
  std::string output_root = "runs";
  int threads = 0;
  Index jobs = 0;
  bool dry_run = false;
};

std::atomic<bool> stop_requested{false};

// The first Ctrl-C or SIGTERM asks the run to end after its step; the second ends the program at once.
extern "C" void request_stop(int) {
  stop_requested = true;
  for (const int next : {SIGINT, SIGTERM}) std::signal(next, SIG_DFL);
}

// A terminal that is closed asks too, but may do so twice (the system and the shell), or after a Ctrl-C.
extern "C" void request_stop_of_terminal(int) { stop_requested = true; }

// Of runs that have not ended as they should: how many have, and how to go on.
std::string what_is_left(const ExperimentOutcome& outcome) {
  if (outcome.failed.empty() && !outcome.interrupted) return {};
  const auto diverged = std::ranges::count(outcome.failed, true, &FailedRun::diverged);
  const auto failed = std::ssize(outcome.failed) - diverged;
  std::string text =
      fmt::format("moelab: {}{} of {} runs are done", outcome.interrupted ? "interrupted: " : "",
                  outcome.num_done, outcome.num_runs);
  if (diverged > 0) text += fmt::format(", {} diverged", diverged);
  if (failed > 0) text += fmt::format(", {} failed", failed);
  const std::string resume = "moelab run --resume " + shell_word(outcome.folder.string());
  if (outcome.interrupted) return fmt::format("{}; go on with: {}\n", text, resume);
  if (failed > 0) return fmt::format("{}; to try again: {}\n", text, resume);
  return text + "; from the same config they would diverge again\n";
}

void run(const Options& options, Context& context) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the progress that went away ends no training
  parallel::set_threads(options.threads);
  const Experiment experiment = options.arguments.load();
  tell(memory_warning(experiment));
  if (options.dry_run) {
    print(plan_of(experiment) + "\n" + memory_of_jobs(experiment, jobs_at_a_time(options.jobs)) + "\n");
    return;
  }
  for (const std::string& warning : comparability_warnings(experiment))
    tell(fmt::format("{}: warning: {}\n", experiment.file.string(), warning));
  if (!context.quiet) tell(memory_of_jobs(experiment, jobs_at_a_time(options.jobs)) + "\n");
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  if (std::signal(SIGHUP, request_stop_of_terminal) == SIG_IGN)
    std::signal(SIGHUP, SIG_IGN);  // as nohup asks

  RunOptions run_options;
  run_options.output_root = options.output_root;
  run_options.resume = options.arguments.execution;
  run_options.jobs = options.jobs;
  run_options.data_cache = default_cache_folder();
  run_options.quiet = context.quiet;
  run_options.command_line = context.command_line;
  run_options.stop_requested = [] { return stop_requested.load(); };
  const ExperimentOutcome outcome = run_experiment(experiment, run_options);

  if (!outcome.failed.empty()) context.exit_code = kSomeRunsFailed;
  if (outcome.interrupted) context.exit_code = kInterrupted;
  context.last_words = what_is_left(outcome);

  // The page first: nobody may be left to read the rest.
  const ResultsFile results(outcome.results);
  const std::filesystem::path page = outcome.folder / "report.html";
  report::write_report(page, results);
  if (!results.runs().empty())
    print(render(compare_file(results), TableFormat::table, columns_of(stdout, kAnyWidth)));
  if (!outcome.failed.empty()) print("\n");
  for (const FailedRun& failed : outcome.failed) print(fmt::format("{}: {}\n", failed.name, failed.reason));
  fmt::print("\nresults  {}\nreport   {}\nruns     {}\n", outcome.results.string(), page.string(),
             outcome.folder.string());
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "run", "Train every run of an experiment file, record the results, and compare the variants");
  auto options = std::make_shared<Options>();
  options->arguments.add_to(*command);
  command->add_flag("--dry-run", options->dry_run,
                    "Say what would be trained and what it costs, as check does");
  command->add_option("-o,--output", options->output_root, "Folder for results")->capture_default_str();
  command->add_option("-j,--jobs", options->jobs, "Runs at a time; 0: as many as there are threads")
      ->check(CLI::Range(0, 4096));
  command->add_option("-t,--threads", options->threads, "Threads to use; 0: all that the machine grants")
      ->check(CLI::Range(0, 4096));
  command->add_option("--resume", options->arguments.execution,
                      "Folder of an execution (runs/<name>/<time> or latest): finish its runs instead");
  command->callback([options, &context] { run(*options, context); });
}

}  // namespace moelab::cli

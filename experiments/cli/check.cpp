#include "experiments/accounting/variants.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/config/experiment.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

struct CheckOptions {
  std::string file;
  std::vector<std::string> overrides;
};

std::string settings_of(const Experiment& experiment, const Run& run) {
  std::string out;
  if (!run.point) return out;
  for (const auto& [key, value] : experiment.points[static_cast<std::size_t>(*run.point)].settings) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, value);
  }
  return out;
}

std::string runs_table(const Experiment& experiment) {
  std::vector<std::vector<std::string>> rows = {{"run", "steps", "tokens", "sweep"}};
  for (const Run& run : experiment.runs) {
    const TrainConfig& train = run.config.train;
    const Index steps = train.num_steps();
    rows.push_back({run.name, fmt::format("{}", steps),
                    short_number(static_cast<double>(steps * train.batch_tokens)),
                    settings_of(experiment, run)});
  }
  return format_table(rows);
}

void check(const CheckOptions& options, const Context& context) {
  LoadOptions load;
  load.overrides = options.overrides;
  load.solve_twin = solve_twin;
  const Experiment experiment = load_experiment(options.file, load);
  for (const std::string& warning : experiment.warnings) {
    fmt::print(stderr, "{}", paint_diagnostics(warning, has_colour(stderr)));
  }
  for (const std::string& warning : comparability_warnings(experiment)) {
    fmt::print(
        stderr, "{}",
        paint_diagnostics(fmt::format("{}: warning: {}\n", options.file, warning), has_colour(stderr)));
  }
  if (context.quiet) return;
  fmt::print("{}: {} variants, {} seeds, {} runs; no errors\n\n{}", experiment.name,
             experiment.variants.size(), experiment.seeds.size(), experiment.runs.size(),
             runs_table(experiment));
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "check", "Check an experiment file whole and list its runs; nothing is trained or written");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("experiment", options->file, "The experiment file (YAML)")->required();
  command->add_option("overrides", options->overrides,
                      "KEY=VALUE, set in the base before variants are applied");
  command->callback([options, &context] { check(*options, context); });
}

}  // namespace moelab::cli

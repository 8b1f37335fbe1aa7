#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/condition.hpp"
#include "experiments/compare/render.hpp"
#include "experiments/results/results_path.hpp"
#include "experiments/training/progress.hpp"

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab::cli {

namespace {

struct Options {
  std::vector<std::string> files;
  std::string baseline, metric, at = "final", format = "table";
  double confidence = 0;  // 0: what the file says
  std::vector<std::string> fail_if;
};

// What other formats have as notes.
std::string warnings_of(const Comparison& comparison) {
  std::string text;
  const std::vector<std::string> alone = without_baseline(comparison);
  if (!alone.empty())
    text += fmt::format("moelab: not compared, as no one point of {} has their settings: {}\n",
                        baseline_name(comparison), fmt::join(alone, ", "));
  for (const std::string& note : notes_on_data(comparison)) text += fmt::format("moelab: {}\n", note);
  return text;
}

void compare(const Options& options, Context& context) {
  CompareOptions how;
  how.baseline = options.baseline;
  how.metric = options.metric;
  how.at = parse_at(options.at);
  if (options.confidence != 0) how.confidence = options.confidence;
  const TableFormat format = table_format(options.format);
  std::vector<Condition> conditions;
  for (const std::string& text : options.fail_if) conditions.push_back(parse_condition(text));

  // `runs/NAME/*/results.h5` finds the newest file twice: as itself and behind the link `latest`.
  std::vector<ResultsFile> files;
  std::set<std::filesystem::path> known;
  for (const std::string& named : options.files) {
    const std::filesystem::path path = results_path(named);
    if (known.insert(std::filesystem::weakly_canonical(path)).second) {
      files.emplace_back(path);
    } else if (!context.quiet) {
      tell(fmt::format("moelab: {} is given twice and counts once\n", path.string()));
    }
  }
  const Comparison comparison = compare_files(files, how);
  print(render(comparison, format, columns_of(stdout, kAnyWidth)));
  if (format == TableFormat::csv || format == TableFormat::json) tell(warnings_of(comparison));
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const std::string held = holds_for(conditions[i], comparison);
    if (held.empty()) continue;
    tell(fmt::format("moelab: '{}' holds: {}\n", options.fail_if[i], held));
    context.exit_code = kFailIfHeld;
  }
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("compare", "Variants against a baseline, over seeds, with intervals");
  auto options = std::make_shared<Options>();
  command
      ->add_option("FILES", options->files,
                   "results.h5 or run.h5 files, or the folders of executions or runs")
      ->required();
  command->add_option("--baseline", options->baseline, "Variant that the others are compared with");
  command->add_option("--metric", options->metric,
                      "eval/loss, eval/bits_per_byte, train/loss, eval/loss/DOMAIN, ...");
  command->add_option("--at", options->at, "final, best, tokens=1e6 or flops=1e13")->capture_default_str();
  command->add_option("--confidence", options->confidence, "Of the intervals, e.g. 0.95")
      ->check(CLI::Range(0.01, 0.9999));
  command->add_option("--format", options->format, "table, md, csv, json or latex")->capture_default_str();
  command->add_option("--fail-if", options->fail_if, "Condition that ends with status 4, e.g. 'delta > 0'");
  command->callback([options, &context] { compare(*options, context); });
}

}  // namespace moelab::cli

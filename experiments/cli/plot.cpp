#include "core/error.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/terminal.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/results/results_path.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab::cli {

namespace {

// What a kind does not read would be passed over without a word.
void refuse_options_of_others(const CLI::App& command, const std::string& kind_name) {
  const auto kind = std::ranges::find(plot::figure_kinds(), kind_name, &plot::FigureKind::name);
  if (kind == plot::figure_kinds().end()) return;  // told where it is made
  for (const char* option : {"--metric", "--x", "--log-x", "--log-y", "--at", "--run", "--layer"}) {
    if (command.count(option) == 0 || std::ranges::find(kind->options, option) != kind->options.end())
      continue;
    throw ConfigError(fmt::format("the figure {} does not read {}; it reads {}", kind_name, option,
                                  fmt::join(kind->options, ", ")));
  }
}

}  // namespace

void add_plot(CLI::App& app, Context& context) {
  struct Options {
    std::string file, kind, output;
    plot::FigureOptions figure;
    std::int64_t layer = 0;
    std::string at;
  };
  CLI::App* command = app.add_subcommand("plot", "A figure of a results file, as SVG, PDF or PNG");
  auto options = std::make_shared<Options>();
  std::string kinds;
  for (const plot::FigureKind& k : plot::figure_kinds())
    kinds += fmt::format("\n  {:<13} {}", k.name, k.help);
  command->footer("Kinds:" + kinds);
  command->add_option("FILE", options->file, "results.h5 or run.h5, or the folder of an execution or a run")
      ->required();
  command->add_option("KIND", options->kind, "What to show, see below")->required();
  command->add_option("-o,--output", options->output, "File to write: .svg, .pdf or .png")->required();
  command->add_option("--metric", options->figure.metric, "Of loss, bars, isoflop, scaling")
      ->capture_default_str();
  command->add_option("--x", options->figure.x, "Of loss: tokens, flops, seconds or steps")
      ->check(CLI::IsMember({"tokens", "flops", "seconds", "steps"}))
      ->capture_default_str();
  command->add_flag("--log-x", options->figure.log_x, "Of loss: logarithmic axis");
  command->add_flag("--log-y", options->figure.log_y, "Of loss: logarithmic axis");
  command->add_option("--at", options->at,
                      "Of bars, isoflop and scaling: final, best, tokens=1e6 or flops=1e13");
  command->add_option("--run", options->figure.run, "Of figures of one run; else the first that fits");
  command->add_option("--layer", options->layer, "Of tokens; else the last")->check(CLI::NonNegativeNumber);
  command->callback([options, command, &context] {
    refuse_options_of_others(*command, options->kind);
    if (!options->at.empty()) options->figure.at = parse_at(options->at);
    if (command->count("--layer") > 0) options->figure.layer = options->layer;
    const plot::Drawing drawing =
        plot::make_figure(ResultsFile(results_path(options->file)), options->kind, options->figure);
    plot::write_drawing(options->output, drawing);
    if (!context.quiet) tell(fmt::format("wrote {}\n", options->output));
  });
}

}  // namespace moelab::cli

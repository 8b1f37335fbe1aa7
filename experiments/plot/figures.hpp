// The figures that `moelab plot` and the report make from a results file.
#pragma once

#include "experiments/compare/compare_files.hpp"
#include "experiments/plot/drawing.hpp"
#include "experiments/results/results_file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab::plot {

// In points; wider than usual where long names need it.
inline constexpr double kFigureWidth = 340, kWidestFigure = 510;

struct FigureOptions {
  std::string metric = "eval/loss";   // of the curves, bars and the scaling figure
  std::string x = "tokens";           // of curves: tokens | flops | seconds | steps
  bool log_x = false, log_y = false;  // of curves
  std::optional<At> at;               // of bars and the scaling figure; absent: the end
  std::string run;                    // of figures of one run; empty: the first that has what is shown
  std::optional<std::int64_t> layer;  // of the token figure; absent: the last
};

struct FigureKind {
  std::string name;
  std::string help;
  std::vector<std::string> options;  // of the command line that it reads
  Drawing (*make)(const ResultsFile& file, const FigureOptions& options);
};
// loss, load, entropy, load_cv, coactivation, domains, saturation, tokens, bars, isoflop, scaling.
const std::vector<FigureKind>& figure_kinds();

// Throws ConfigError listing the kinds where there is none such, Error where the file has nothing to show.
Drawing make_figure(const ResultsFile& file, const std::string& kind, const FigureOptions& options);

// Each of them; the files below define them.
Drawing loss_figure(const ResultsFile& file, const FigureOptions& options);          // curves.cpp
Drawing load_figure(const ResultsFile& file, const FigureOptions& options);          // routing.cpp
Drawing entropy_figure(const ResultsFile& file, const FigureOptions& options);       // routing.cpp
Drawing load_cv_figure(const ResultsFile& file, const FigureOptions& options);       // routing.cpp
Drawing saturation_figure(const ResultsFile& file, const FigureOptions& options);    // routing.cpp
Drawing coactivation_figure(const ResultsFile& file, const FigureOptions& options);  // specialisation.cpp
Drawing domains_figure(const ResultsFile& file, const FigureOptions& options);       // specialisation.cpp
Drawing tokens_figure(const ResultsFile& file, const FigureOptions& options);        // specialisation.cpp
Drawing bars_figure(const ResultsFile& file, const FigureOptions& options);          // comparison_figures.cpp
Drawing isoflop_figure(const ResultsFile& file, const FigureOptions& options);       // comparison_figures.cpp
Drawing scaling_figure(const ResultsFile& file, const FigureOptions& options);       // comparison_figures.cpp

// Label of an axis, with its unit: "held-out loss (nat)".
std::string metric_label(const std::string& metric);

// The run that is asked for, or the first that has the object (a path below its group). Error where none has.
std::string run_with(const ResultsFile& file, const FigureOptions& options, const std::string& object);
// Numbers of the mixture layers of a group (its path, with the slash). Error where there are none.
std::vector<std::int64_t> layers_of(const hdf5::Reader& reader, const std::string& group);

}  // namespace moelab::plot

// Curves of a metric: a line a variant, the mean over seeds, and a band from the lowest to the highest seed.
#include "core/error.hpp"
#include "experiments/compare/statistics.hpp"
#include "experiments/plot/axes.hpp"
#include "experiments/plot/figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace moelab::plot {

namespace {

constexpr double kWidth = kFigureWidth, kWidest = kWidestFigure, kHeight = 250;

struct Curve {
  std::string label;
  std::vector<double> x, mean, low, high;
};

std::vector<double> abscissa(const Series& s, const RunSummary& run, const std::string& x) {
  if (x == "tokens") return s.tokens;
  if (x == "steps") return s.step;
  if (x == "seconds") return s.time;
  if (x != "flops") throw ConfigError(fmt::format("'{}' is no axis; use tokens, flops, seconds or steps", x));
  std::vector<double> flops = s.tokens;
  for (double& f : flops) f *= run.train_flops / run.tokens;
  return flops;
}

std::string axis_label(const std::string& x) {
  if (x == "tokens") return "training tokens";
  if (x == "steps") return "optimizer steps";
  if (x == "seconds") return "training time (s)";
  return "training FLOPs";
}

// Seeds are averaged record by record: they evaluate at the same tokens. Seconds differ a little; their mean
// is taken.
Curve merged(const std::string& label, const std::vector<Series>& seeds,
             const std::vector<std::vector<double>>& xs) {
  Curve c;
  c.label = label;
  std::map<double, std::vector<std::pair<double, double>>> by_step;  // (x, value) of each seed
  for (std::size_t s = 0; s < seeds.size(); ++s)
    for (std::size_t i = 0; i < seeds[s].step.size(); ++i)
      if (std::isfinite(seeds[s].value[i]) && std::isfinite(xs[s][i]))
        by_step[seeds[s].step[i]].emplace_back(xs[s][i], seeds[s].value[i]);
  for (const auto& [step, points] : by_step) {
    std::vector<double> x, y;
    for (const auto& [px, py] : points) {
      x.push_back(px);
      y.push_back(py);
    }
    c.x.push_back(mean(x));
    c.mean.push_back(mean(y));
    c.low.push_back(*std::ranges::min_element(y));
    c.high.push_back(*std::ranges::max_element(y));
  }
  return c;
}

}  // namespace

Drawing loss_figure(const ResultsFile& file, const FigureOptions& options) {
  std::vector<std::string> labels;
  std::map<std::string, std::vector<Series>> seeds;
  std::map<std::string, std::vector<std::vector<double>>> xs;
  const std::vector<std::string> label_of_run = labels_of(file.runs());
  for (std::size_t i = 0; i < label_of_run.size(); ++i) {
    const RunSummary& r = file.runs()[i];
    auto series = file.series(r.run, options.metric);
    if (!series) continue;
    const std::string& label = label_of_run[i];
    if (!seeds.contains(label)) labels.push_back(label);
    xs[label].push_back(abscissa(*series, r, options.x));
    seeds[label].push_back(std::move(*series));
  }
  require(!labels.empty(), "[plot] no run of {} has the metric '{}'", file.path().string(), options.metric);
  std::vector<Curve> curves;
  std::vector<double> all_x, all_y;
  std::vector<LegendEntry> entries;
  for (const std::string& label : labels) {
    const Curve& c = curves.emplace_back(merged(label, seeds[label], xs[label]));
    all_x.insert(all_x.end(), c.x.begin(), c.x.end());
    all_y.insert(all_y.end(), c.low.begin(), c.low.end());
    all_y.insert(all_y.end(), c.high.begin(), c.high.end());
    const auto [colour, dash] = line_style(entries.size());
    entries.push_back({label, colour, dash});
  }
  const double x = 58;
  // So wide that the longest name has a row to itself, within reason.
  const double width = std::clamp(x + legend_width(entries) + 14, kWidth, kWidest);
  Drawing d{width, kHeight, metric_label(options.metric) + " over " + axis_label(options.x), {}};
  const double w = width - x - 14;
  const double top = 8 + legend(d, x, 6, w, entries);
  d.height += legend_height(w, entries) - 13;
  Axes axes(d, {x, top + 6, w, d.height - top - 46}, axis_for(axis_label(options.x), all_x, options.log_x),
            axis_for(metric_label(options.metric), all_y, options.log_y));
  for (std::size_t i = 0; i < curves.size(); ++i)
    axes.band(curves[i].x, curves[i].low, curves[i].high, entries[i].colour);
  for (std::size_t i = 0; i < curves.size(); ++i)
    axes.curve(curves[i].x, curves[i].mean, entries[i].colour, 1.6, entries[i].dash);
  return d;
}

}  // namespace moelab::plot

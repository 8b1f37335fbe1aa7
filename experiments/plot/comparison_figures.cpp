// Variants side by side.
#include "core/error.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/text_table.hpp"
#include "experiments/plot/axes.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/plot/labels.hpp"
#include "experiments/plot/power_law.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace moelab::plot {

namespace {

constexpr double kWidth = kFigureWidth, kWidest = kWidestFigure;
constexpr double kWidestLabel = 300, kNarrowestPanel = 160;  // of bars

Comparison comparison_of(const ResultsFile& file, const std::string& metric, const std::optional<At>& at) {
  CompareOptions options;
  options.metric = metric;
  options.at = at.value_or(At());
  options.efficiency = false;
  Comparison c = compare_files({&file, 1}, options);
  require(std::ranges::any_of(c.variants, [](const VariantResult& v) { return !v.seeds.empty(); }),
          "[plot] no run of {} has ended with {} {}", file.path().string(), metric, c.at);
  return c;
}

// Sizes and losses of the points of one variant, and the law through them. Dense models and mixtures have
// laws of their own: one through both would be the law of neither.
struct ScalingFit {
  std::vector<double> size, loss;
  std::optional<PowerLaw> law;
};

ScalingFit fit_of(const Comparison& c, const std::string& variant, double VariantResult::*size) {
  ScalingFit fit;
  for (const VariantResult& v : c.variants) {
    if (v.variant != variant || std::isnan(v.mean) || !(v.*size > 0)) continue;
    fit.size.push_back(v.*size);
    fit.loss.push_back(v.mean);
  }
  fit.law = fit_power_law(fit.size, fit.loss, c.confidence);
  return fit;
}

std::string in_words(const std::optional<PowerLaw>& law) {
  if (!law) return "fewer than four sizes over a factor of 2: no fit";
  std::string text = fmt::format("{:.3g} + {:.3g} C^-{:.2g}", law->c, law->a, law->alpha);
  if (std::isnan(law->alpha_interval.low)) return text + ", too few points for an interval";
  return text + fmt::format(", exponent {:.2g} to {:.2g}", law->alpha_interval.low, law->alpha_interval.high);
}

}  // namespace

Drawing bars_figure(const ResultsFile& file, const FigureOptions& options) {
  const Comparison c = comparison_of(file, options.metric, options.at);
  std::vector<double> extent;
  std::vector<std::string> labels, computes;
  double compute_width = 0;
  for (const VariantResult& v : c.variants) {
    for (const SeedValue& s : v.seeds) extent.push_back(s.value);
    extent.push_back(v.t.low);
    extent.push_back(v.t.high);
    labels.push_back(v.label);
    computes.push_back(fmt::format(" ({}x)", with_digits(v.relative_compute, 2)));
    compute_width = std::max(compute_width, text_width(computes.back(), kFontSize));
  }
  labels = shortened(labels, kWidestLabel - compute_width, kFontSize);
  double label_width = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    label_width = std::max(label_width, text_width(labels[i] + computes[i], kFontSize));
  constexpr double kRow = 22, kTop = 26;
  const double left = label_width + 16;
  const double width = std::max(kWidth, left + kNarrowestPanel + 12);
  const double h = kRow * static_cast<double>(c.variants.size());
  Drawing d{width, kTop + h + 47, options.metric + " by variant", {}};
  const Axis x = axis_for(metric_label(c.metric) + " " + c.at, extent);
  const Box box{left, kTop, width - left - 12, h};
  d.add(Text{{8, 13}, "variant (compute per token, relative)", kFontSize, Anchor::start, false, true});
  const auto px = [&](double value) { return box.x + box.w * (value - x.low) / (x.high - x.low); };
  for (const Tick& t : ticks(x, std::max(3, static_cast<int>(box.w / 55)))) {
    d.add(Line{{{px(t.value), box.y}, {px(t.value), box.y + h}}, kGrid, 0.6});
    d.add(Text{{px(t.value), box.y + h + 12}, t.text, kFontSize, Anchor::middle});
  }
  d.add(Line{{{box.x, box.y}, {box.x, box.y + h}, {box.x + box.w, box.y + h}}, kInk, 0.8});
  d.add(Text{{width - 12, box.y + h + 26}, x.label, kFontSize, Anchor::end});
  d.add(Text{{width - 12, box.y + h + 39},
             fmt::format("square: mean, bar: {:g} % interval, ticks: seeds", 100 * c.confidence),
             kFontSize - 1,
             Anchor::end});
  for (std::size_t i = 0; i < c.variants.size(); ++i) {
    const VariantResult& v = c.variants[i];
    const double y = box.y + kRow * (static_cast<double>(i) + 0.5);
    const Colour colour = palette(i);
    d.add(Text{{left - 6, y + 0.35 * kFontSize}, labels[i] + computes[i], kFontSize, Anchor::end});
    for (const SeedValue& s : v.seeds)
      d.add(Line{{{px(s.value), y - 4}, {px(s.value), y + 4}}, {colour.r, colour.g, colour.b, 0.6}, 1});
    if (!std::isnan(v.t.low)) d.add(Line{{{px(v.t.low), y}, {px(v.t.high), y}}, colour, 2});
    if (!std::isnan(v.mean)) d.rectangle(px(v.mean) - 3, y - 3, 6, 6, colour);
  }
  return d;
}

Drawing isoflop_figure(const ResultsFile& file, const FigureOptions& options) {
  FigureOptions equal = options;
  if (!equal.at) {
    const double flops = common_flops(file, options.metric);
    require(std::isfinite(flops), "[plot] no run of {} has ended with {}", file.path().string(),
            options.metric);
    equal.at = At{At::Kind::flops, flops};
  }
  return bars_figure(file, equal);
}

Drawing scaling_figure(const ResultsFile& file, const FigureOptions& options) {
  const Comparison c = comparison_of(file, options.metric, options.at);
  constexpr double kPanel = 170, kGap = 50, kLeft = 54, kLine = 11;
  Drawing d{kWidth, 0, options.metric + " against parameters", {}};
  std::vector<std::string> names;
  std::vector<LegendEntry> entries;
  for (const VariantResult& v : c.variants)
    if (std::ranges::find(names, v.variant) == names.end()) {
      entries.push_back({v.variant, palette(names.size())});
      names.push_back(v.variant);
    }
  const std::pair<const char*, double VariantResult::*> axes[] = {
      {"active parameters", &VariantResult::params_active},
      {"total parameters", &VariantResult::params_total}};
  double name_width = 0, law_width = 0;
  for (const std::string& name : names) {
    name_width = std::max(name_width, text_width(name, kFontSize - 1));
    for (const auto& [label, size] : axes)
      law_width = std::max(law_width, text_width(": " + in_words(fit_of(c, name, size).law), kFontSize - 1));
  }
  d.width = std::clamp(kLeft + name_width + law_width + 8, kWidth, kWidest);
  const std::vector<std::string> short_names =
      shortened(names, d.width - kLeft - law_width - 8, kFontSize - 1);
  const double w = d.width - kLeft - 14;
  double top = 8 + legend(d, kLeft, 6, w, entries) + 16;
  for (const auto& [label, size] : axes) {
    std::vector<double> sizes, extent;
    for (const VariantResult& v : c.variants) {
      if (std::isnan(v.mean) || !(v.*size > 0)) continue;
      sizes.push_back(v.*size);
      extent.insert(extent.end(), {v.mean, v.mean - v.standard_deviation, v.mean + v.standard_deviation});
    }
    require(!sizes.empty(), "[plot] no variant of {} has a loss and a size", file.path().string());
    std::vector<ScalingFit> fits;
    for (std::size_t i = 0; i < names.size(); ++i) {
      fits.push_back(fit_of(c, names[i], size));
      d.add(Text{{kLeft, top - 5}, short_names[i] + ": " + in_words(fits[i].law), kFontSize - 1});
      d.add(Line{{{kLeft - 12, top - 8}, {kLeft - 4, top - 8}}, entries[i].colour, 2, Dash::dashes});
      top += kLine;
    }
    const Axis x = axis_for(label, sizes, true);
    Axes panel(d, {kLeft, top - 8, w, kPanel - 20}, x, axis_for(metric_label(c.metric), extent));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!fits[i].law) continue;
      const auto [low, high] = std::ranges::minmax(fits[i].size);
      std::vector<double> curve_x, curve_y;
      for (int step = 0; step <= 60; ++step) {
        curve_x.push_back(std::exp(std::lerp(std::log(low), std::log(high), step / 60.0)));
        curve_y.push_back(fits[i].law->at(curve_x.back()));
      }
      panel.curve(curve_x, curve_y, entries[i].colour, 1, Dash::dashes);
    }
    for (const VariantResult& v : c.variants) {
      if (std::isnan(v.mean) || !(v.*size > 0)) continue;
      const auto index = static_cast<std::size_t>(std::ranges::find(names, v.variant) - names.begin());
      panel.interval(v.*size, v.mean - v.standard_deviation, v.mean + v.standard_deviation,
                     entries[index].colour);
      panel.marker(v.*size, v.mean, entries[index].colour);
    }
    top += kPanel + kGap;
  }
  d.height = top - 18;
  return d;
}

}  // namespace moelab::plot

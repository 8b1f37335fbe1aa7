// Routing over the course of a run.
#include "core/error.hpp"
#include "experiments/plot/axes.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/plot/heatmap.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moelab::plot {

namespace {

constexpr double kWidth = kFigureWidth, kHeight = 230, kLeft = 52;

// A line a layer.
Drawing layer_lines(const ResultsFile& file, const std::string& run, const std::string& group,
                    const std::string& x_name, const std::string& name, const std::string& x_label,
                    const std::string& y_label) {
  const hdf5::Reader& reader = file.reader();
  const std::string path = ResultsFile::group_of(run) + "/" + group + "/";
  const std::vector<std::int64_t> layers = layers_of(reader, path);
  const auto x = reader.read_array<double>(path + x_name, {hdf5::kAnyLength}).values;
  const auto values = reader.read_array<double>(path + name, {x.size(), layers.size()}).values;
  std::vector<LegendEntry> entries;
  // Layers are ordered, so their colours are too; the light end of the scale is faint on white.
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const double share =
        layers.size() == 1 ? 0.3 : 0.85 * static_cast<double>(l) / static_cast<double>(layers.size() - 1);
    entries.push_back({fmt::format("layer {}", layers[l]), sequential(share)});
  }
  Drawing d{kWidth, kHeight, fmt::format("{} of {}", y_label, run), {}};
  const double w = kWidth - kLeft - 14;
  const double top = 20 + legend(d, kLeft, 18, w, entries);
  d.height += legend_height(w, entries) - 13;
  d.add(Text{{kLeft, 13}, run, kFontSize, Anchor::start, false, true});
  Axes axes(d, {kLeft, top + 4, w, d.height - top - 44}, axis_for(x_label, x), axis_for(y_label, values));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(values[i * layers.size() + l]);
    axes.curve(x, y, entries[l].colour);
  }
  return d;
}

// Where the cells of records at these steps begin and the last one ends, as shares of an axis: half way
// between neighbours, so that each record lies in its own cell.
std::vector<double> cell_edges(const std::vector<double>& steps, const Axis& axis) {
  std::vector<double> edges = {0};
  for (std::size_t i = 1; i < steps.size(); ++i)
    edges.push_back(((steps[i - 1] + steps[i]) / 2 - axis.low) / (axis.high - axis.low));
  edges.push_back(1);
  return edges;
}

}  // namespace

Drawing entropy_figure(const ResultsFile& file, const FigureOptions& options) {
  return layer_lines(file, run_with(file, options, "routing/router_entropy"), "routing", "step",
                     "router_entropy", "optimizer steps", "router entropy (nat)");
}

Drawing load_cv_figure(const ResultsFile& file, const FigureOptions& options) {
  return layer_lines(file, run_with(file, options, "routing/load_cv"), "routing", "step", "load_cv",
                     "optimizer steps", "load CV (std / mean)");
}

Drawing saturation_figure(const ResultsFile& file, const FigureOptions& options) {
  return layer_lines(file, run_with(file, options, "routing_eval/router_saturation"), "routing_eval",
                     "probe_step", "router_saturation", "optimizer steps", "share of the final experts");
}

Drawing load_figure(const ResultsFile& file, const FigureOptions& options) {
  const std::string run = run_with(file, options, "routing/expert_tokens");
  const std::string path = ResultsFile::group_of(run) + "/routing/";
  const hdf5::Reader& reader = file.reader();
  const std::vector<std::int64_t> layers = layers_of(reader, path);
  const auto experts = reader.read_array<std::int64_t>(path + "num_experts", {layers.size()}).values;
  const auto step = reader.read_array<double>(path + "step", {hdf5::kAnyLength}).values;
  const auto tokens =
      reader.read_array<double>(path + "expert_tokens", {step.size(), layers.size(), hdf5::kAnyLength});
  const std::size_t widest = tokens.shape[2];
  for (const std::int64_t count : experts) {
    require(count >= 1 && count <= static_cast<std::int64_t>(widest),
            "[plot] run {} has a layer of {} experts, {} were counted", run, count, widest);
  }
  // Load relative to a uniform one: 1 is balanced, 0 a dead expert.
  std::vector<Heatmap> load;
  double largest = 2;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto num_experts = static_cast<std::size_t>(experts[l]);
    // The first expert at the bottom.
    std::vector<std::vector<double>> rows(num_experts, std::vector<double>(step.size(), std::nan("")));
    for (std::size_t s = 0; s < step.size(); ++s) {
      const double* counts = &tokens.values[(s * layers.size() + l) * widest];
      double sum = 0;
      for (std::size_t e = 0; e < num_experts; ++e) sum += counts[e];
      for (std::size_t e = 0; e < num_experts && sum > 0; ++e) {
        rows[num_experts - 1 - e][s] = counts[e] / sum * static_cast<double>(num_experts);
      }
    }
    load.emplace_back(rows, layers.size());
    largest = std::max(largest, load.back().largest());
  }
  constexpr double kPanel = 70, kGap = 24, kTop = 32;
  const double height = kTop + (kPanel + kGap) * static_cast<double>(layers.size()) + 20;
  Drawing d{kWidth, height, "load of the experts of " + run, {}};
  d.add(Text{{kLeft, 13}, run, kFontSize, Anchor::start, false, true});
  const double w = kWidth - kLeft - 62;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Box box{kLeft, kTop + (kPanel + kGap) * static_cast<double>(l), w, kPanel};
    const bool last = l + 1 == layers.size();
    const double high = static_cast<double>(experts[l]);
    Axis x{last ? "optimizer steps" : "", step.front(), std::max(step.back(), step.front() + 1), false};
    load[l].draw(d, box, 0, largest, cell_edges(step, x));
    // The axis counts cells; an expert's number stands at its centre.
    d.add(Text{{box.x + w / 2, box.y - 4},
               fmt::format("layer {}{}", layers[l], load[l].note()),
               kFontSize,
               Anchor::middle});
    const auto every = static_cast<std::int64_t>(std::ceil(high / 5));
    for (std::int64_t e = 0; e < experts[l]; e += every) {
      const double y = box.y + box.h * (1 - (static_cast<double>(e) + 0.5) / high);
      d.add(Text{{box.x - 5, y + 0.35 * kFontSize}, std::to_string(e), kFontSize, Anchor::end});
    }
    d.add(Text{{box.x - 30, box.y + box.h / 2}, "expert", kFontSize, Anchor::middle, true});
    for (const Tick& t : ticks(x, 4)) {
      const double px = box.x + w * (t.value - x.low) / (x.high - x.low);
      d.add(Line{{{px, box.y + box.h}, {px, box.y + box.h + 3}}, kInk, 0.8});
      if (last) d.add(Text{{px, box.y + box.h + 3 + kFontSize}, t.text, kFontSize, Anchor::middle});
    }
    if (last) d.add(Text{{box.x + w / 2, box.y + box.h + 27}, x.label, kFontSize, Anchor::middle});
  }
  colour_bar(d, {kLeft + w + 12, kTop, 10, std::min(height - kTop - 44, 160.0)}, 0, largest,
             "load / uniform load");
  return d;
}

}  // namespace moelab::plot

// What the experts of a run do on the evaluation set.
#include "core/error.hpp"
#include "experiments/plot/axes.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/plot/heatmap.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moelab::plot {

namespace {

constexpr double kWidth = kFigureWidth;
constexpr std::size_t kMaxDomains = 40;  // more have no room in a legend
constexpr double kThinnestBar = 0.75;    // a pixel of a screen
constexpr std::size_t kMaxTokens = 500;  // of a sample

void axis_numbers(Drawing& d, const Box& box, std::size_t count, bool horizontal) {
  const double widest = text_width(std::to_string(count), kFontSize) + 3;
  const auto most = horizontal ? std::min<std::size_t>(8, static_cast<std::size_t>(box.w / widest)) : 8;
  const std::size_t every = (count + most - 1) / most;
  for (std::size_t i = 0; i < count; i += every) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    if (horizontal) {
      d.add(Text{{box.x + box.w * share, box.y + box.h + 3 + kFontSize},
                 std::to_string(i),
                 kFontSize,
                 Anchor::middle});
    } else {
      d.add(Text{
          {box.x - 4, box.y + box.h * share + 0.35 * kFontSize}, std::to_string(i), kFontSize, Anchor::end});
    }
  }
}

}  // namespace

Drawing coactivation_figure(const ResultsFile& file, const FigureOptions& options) {
  const std::string run = run_with(file, options, "routing_eval/coactivation");
  const std::string path = ResultsFile::group_of(run) + "/routing_eval/";
  const std::vector<std::int64_t> layers = layers_of(file.reader(), path);
  // (layer, expert, expert_b), -1: no expert
  const auto [shape, counts] = file.reader().read_array<double>(
      path + "coactivation", {layers.size(), hdf5::kAnyLength, hdf5::kAnyLength});
  require(shape[1] == shape[2], "[plot] the co-activation of run {} is no square: {} x {}", run, shape[1],
          shape[2]);
  constexpr double kLeft = 38, kTop = 48, kGap = 50;
  const std::size_t columns = std::min<std::size_t>(layers.size(), 2);
  const std::size_t rows = (layers.size() + columns - 1) / columns;
  const double side = columns == 1 ? 190 : 98;
  Drawing d{kWidth,
            kTop + static_cast<double>(rows) * (side + kGap) - kGap + 30,
            "co-activation of the experts of " + run,
            {}};
  d.add(Text{{kLeft, 13}, run, kFontSize, Anchor::start, false, true});
  d.add(Text{{kLeft, 25}, "P(j also chosen | i chosen), white: never chosen", kFontSize});
  double largest = 1e-9;
  std::vector<Heatmap> share;
  std::vector<std::size_t> experts;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<std::vector<double>> cells;
    for (std::size_t i = 0; i < shape[1]; ++i) {
      const double* row = &counts[(l * shape[1] + i) * shape[2]];
      if (row[i] < 0) continue;
      std::vector<double>& to = cells.emplace_back();
      for (std::size_t j = 0; j < shape[2] && row[j] >= 0; ++j) {
        to.push_back(i == j || row[i] == 0 ? std::nan("") : row[j] / row[i]);
      }
    }
    experts.push_back(cells.size());
    share.emplace_back(cells, layers.size());
    largest = std::max(largest, share.back().largest());
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Box box{kLeft + static_cast<double>(l % columns) * (side + kGap),
                  kTop + static_cast<double>(l / columns) * (side + kGap), side, side};
    share[l].draw(d, box, 0, largest);
    d.add(Text{{box.x + side / 2, box.y - 5},
               fmt::format("layer {}{}", layers[l], share[l].note()),
               kFontSize,
               Anchor::middle});
    axis_numbers(d, box, experts[l], true);
    axis_numbers(d, box, experts[l], false);
    d.add(Text{{box.x + side / 2, box.y + side + 24}, "expert j", kFontSize, Anchor::middle});
    const double widest = text_width(std::to_string(experts[l]), kFontSize);
    d.add(Text{{box.x - 12 - widest, box.y + side / 2}, "expert i", kFontSize, Anchor::middle, true});
  }
  const double right = kLeft + static_cast<double>(columns) * (side + kGap) - kGap;
  colour_bar(d, {right + 12, kTop, 9, std::min(side, 120.0)}, 0, largest, "share");
  return d;
}

Drawing domains_figure(const ResultsFile& file, const FigureOptions& options) {
  const std::string run = run_with(file, options, "routing_eval/expert_tokens_by_domain");
  const std::string path = ResultsFile::group_of(run) + "/routing_eval/";
  const std::vector<std::int64_t> layers = layers_of(file.reader(), path);
  auto domains = file.reader().read_array<std::string>(path + "domain", {hdf5::kAnyLength}).values;
  const auto [shape, counts] = file.reader().read_array<double>(
      path + "expert_tokens_by_domain", {layers.size(), hdf5::kAnyLength, domains.size()});
  const std::size_t stride = domains.size();
  std::string title = run;
  if (domains.size() > kMaxDomains) {
    title += fmt::format(", the first {} of {} domains", kMaxDomains, domains.size());
    domains.resize(kMaxDomains);
  }
  std::vector<LegendEntry> entries;
  for (const std::string& domain : domains) entries.push_back({domain, palette(entries.size())});
  entries.push_back({"uniform", kInk, Dash::dashes});
  constexpr double kLeft = 50, kPanel = 80, kGap = 36;
  const double w = kWidth - kLeft - 12;
  Drawing d{kWidth, 0, "experts by domain of " + run, {}};
  d.add(Text{{kLeft, 13}, title, kFontSize, Anchor::start, false, true});
  const double top = 20 + legend(d, kLeft, 18, w, entries) + 14;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::size_t experts = 0;
    while (experts < shape[1] && counts[(l * shape[1] + experts) * stride] >= 0) ++experts;
    // Of the choices that the tokens of a domain make, the share that goes to each expert; of many experts,
    // to each of some neighbours on average.
    const double bars = static_cast<double>(std::max<std::size_t>(1, domains.size()));
    const auto most = std::max<std::size_t>(1, static_cast<std::size_t>(0.8 * w / kThinnestBar / bars));
    const std::size_t block = std::max<std::size_t>(1, (experts + most - 1) / most);
    const std::size_t num_blocks = (experts + block - 1) / block;
    std::vector<double> share(num_blocks * domains.size(), 0);
    double largest = 1.0 / static_cast<double>(experts);
    for (std::size_t m = 0; m < domains.size(); ++m) {
      double sum = 0;
      for (std::size_t e = 0; e < experts; ++e) sum += counts[(l * shape[1] + e) * stride + m];
      for (std::size_t e = 0; e < experts && sum > 0; ++e) {
        const std::size_t in_block = std::min(block, experts - e / block * block);
        share[e / block * domains.size() + m] +=
            counts[(l * shape[1] + e) * stride + m] / sum / static_cast<double>(in_block);
      }
      for (std::size_t b = 0; b < num_blocks; ++b) largest = std::max(largest, share[b * domains.size() + m]);
    }
    const bool last = l + 1 == layers.size();
    const Box box{kLeft, top + static_cast<double>(l) * (kPanel + kGap), w, kPanel};
    const Axis y{"share", 0, 1.08 * largest, false};
    d.add(Text{
        {box.x + w / 2, box.y - 5},
        fmt::format("layer {}{}", layers[l], block > 1 ? fmt::format(" (means of {} experts)", block) : ""),
        kFontSize,
        Anchor::middle});
    for (const Tick& t : ticks(y, 3)) {
      const double py = box.y + box.h * (1 - t.value / y.high);
      d.add(Line{{{box.x, py}, {box.x + w, py}}, kGrid, 0.6});
      d.add(Text{{box.x - 5, py + 0.35 * kFontSize}, t.text, kFontSize, Anchor::end});
    }
    d.add(Text{{box.x - 34, box.y + box.h / 2}, y.label, kFontSize, Anchor::middle, true});
    for (std::size_t b = 0; b < num_blocks; ++b) {
      // The last block may hold fewer experts than the others, and is as much narrower.
      const double left = w * static_cast<double>(b * block) / static_cast<double>(experts);
      const double right =
          w * static_cast<double>(std::min((b + 1) * block, experts)) / static_cast<double>(experts);
      const double bar = 0.8 * (right - left) / bars;
      for (std::size_t m = 0; m < domains.size(); ++m) {
        const double h = box.h * share[b * domains.size() + m] / y.high;
        d.rectangle(box.x + std::lerp(left, right, 0.1) + bar * static_cast<double>(m), box.y + box.h - h,
                    bar, h, entries[m].colour);
      }
    }
    const double uniform = box.y + box.h * (1 - 1.0 / static_cast<double>(experts) / y.high);
    d.add(Line{{{box.x, uniform}, {box.x + w, uniform}}, kInk, 1, Dash::dashes});
    d.add(Line{{{box.x, box.y}, {box.x, box.y + box.h}, {box.x + w, box.y + box.h}}, kInk, 0.8});
    axis_numbers(d, box, experts, true);
    if (last) d.add(Text{{box.x + w / 2, box.y + box.h + 26}, "expert", kFontSize, Anchor::middle});
  }
  d.height = top + static_cast<double>(layers.size()) * (kPanel + kGap) + 10;
  return d;
}

Drawing tokens_figure(const ResultsFile& file, const FigureOptions& options) {
  const std::string run = run_with(file, options, "routing_samples/expert_id");
  const std::string path = ResultsFile::group_of(run) + "/routing_samples/";
  const hdf5::Reader& reader = file.reader();
  const std::vector<std::int64_t> layers = layers_of(reader, path);
  // (sample, position, layer, slot)
  const auto [shape, experts] = reader.read_array<std::int32_t>(
      path + "expert_id", {hdf5::kAnyLength, hdf5::kAnyLength, layers.size(), hdf5::kAnyLength});
  const auto ids = reader.read_array<std::int32_t>(path + "token_id", {shape[0], shape[1]}).values;
  require(std::ranges::any_of(ids, [](std::int32_t id) { return id >= 0; }),
          "[plot] run {} has no text whose tokens could be shown", run);
  std::vector<std::string> texts;
  if (reader.has(path + "token_text"))
    texts = reader.read_array<std::string>(path + "token_text", {shape[0], shape[1]}).values;
  const auto chosen = options.layer ? std::ranges::find(layers, *options.layer) : layers.end() - 1;
  require(chosen != layers.end(), "[plot] run {} has no mixture at layer {}", run,
          options.layer.value_or(-1));
  const auto layer = static_cast<std::size_t>(chosen - layers.begin());
  constexpr double kLeft = 10, kRow = 26, kCell = 11;
  const auto per_row = static_cast<std::size_t>((kWidth - 2 * kLeft) / kCell);
  Drawing d{kWidth, 0, "first expert of each token of " + run, {}};
  d.add(Text{{kLeft, 13},
             fmt::format("{}, layer {}: first expert of each token", run, layers[layer]),
             kFontSize,
             Anchor::start,
             false,
             true});
  double y = 24;
  constexpr std::size_t kSamples = 4;  // more would not fit on a page
  for (std::size_t s = 0; s < std::min(shape[0], kSamples); ++s) {
    std::size_t column = 0;
    for (std::size_t p = 0; p < std::min(shape[1], kMaxTokens); ++p) {
      const std::size_t token = s * shape[1] + p;
      if (ids[token] < 0) continue;
      std::string text = texts.empty() ? std::to_string(ids[token]) : texts[token];
      for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
      const double width = std::max(kCell, text_width(text, kFontSize) + 4);
      const auto cells = static_cast<std::size_t>(std::ceil(width / kCell));
      if (column + cells > per_row) {
        column = 0;
        y += kRow;
      }
      const std::int32_t expert = experts[(token * shape[2] + layer) * shape[3]];
      const double x = kLeft + kCell * static_cast<double>(column), w = kCell * static_cast<double>(cells);
      if (expert >= 0) {
        Colour colour = palette(static_cast<std::size_t>(expert));
        colour.opacity = 0.3;
        d.rectangle(x, y, w - 0.5, kRow - 3, colour);
        d.add(Text{{x + w / 2, y + kRow - 5.5}, std::to_string(expert), 7.5, Anchor::middle});
      }
      d.add(Text{{x + w / 2, y + 11}, text, kFontSize, Anchor::middle});
      column += cells;
    }
    y += kRow + 8;
  }
  d.height = y + 2;
  return d;
}

}  // namespace moelab::plot

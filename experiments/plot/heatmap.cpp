#include "experiments/plot/heatmap.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

namespace moelab::plot {

namespace {

constexpr double kCellsOfFigure = 120'000;  // about 10 MB of SVG
constexpr double kCellsOfPanel = 32'400;    // about half a point a side in a panel of 100 points

std::size_t block_size(std::size_t cells, double most) {
  return static_cast<std::size_t>(std::ceil(static_cast<double>(cells) / std::max(1.0, std::floor(most))));
}

}  // namespace

Heatmap::Heatmap(const std::vector<std::vector<double>>& rows, std::size_t num_panels) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.size());
  const double most = std::min(kCellsOfPanel, kCellsOfFigure / static_cast<double>(num_panels));
  // Of what a short side does not need the long side makes use.
  const double short_side = std::min(static_cast<double>(std::min(rows.size(), width)), std::sqrt(most));
  const double long_side = most / std::max(short_side, 1.0);
  const bool is_wide = width > rows.size();
  block_rows_ = std::max<std::size_t>(1, block_size(rows.size(), is_wide ? short_side : long_side));
  block_columns_ = std::max<std::size_t>(1, block_size(width, is_wide ? long_side : short_side));
  num_rows_ = rows.size();
  for (std::size_t r = 0; r < rows.size(); r += block_rows_) add_blocks(rows, r);
}

void Heatmap::add_blocks(const std::vector<std::vector<double>>& rows, std::size_t first) {
  const std::size_t end = std::min(first + block_rows_, rows.size());
  Row blocks{0, {}};
  for (std::size_t r = first; r < end; ++r) blocks.width = std::max(blocks.width, rows[r].size());
  for (std::size_t c = 0; c < blocks.width; c += block_columns_) {
    double sum = 0, count = 0;
    for (std::size_t r = first; r < end; ++r) {
      for (std::size_t i = c; i < std::min(c + block_columns_, rows[r].size()); ++i) {
        if (!std::isfinite(rows[r][i])) continue;
        sum += rows[r][i];
        ++count;
      }
    }
    blocks.means.push_back(count > 0 ? sum / count : std::nan(""));
    if (count > 0) largest_ = std::max(largest_, sum / count);
  }
  rows_.push_back(std::move(blocks));
}

std::string Heatmap::note() const {
  if (block_rows_ == 1 && block_columns_ == 1) return {};
  return fmt::format(" (means of {} x {})", block_rows_, block_columns_);
}

void Heatmap::draw(Drawing& drawing, Box box, double low, double high,
                   const std::vector<double>& edges) const {
  // The last block of a side may hold fewer cells than the others, and is as much smaller.
  const double h = box.h / static_cast<double>(num_rows_);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const double top = h * static_cast<double>(r * block_rows_);
    const double bottom = h * static_cast<double>(std::min((r + 1) * block_rows_, num_rows_));
    const std::size_t width = rows_[r].width;
    assert(edges.empty() || edges.size() == width + 1);
    const auto edge = [&](std::size_t column) {
      return box.w *
             (edges.empty() ? static_cast<double>(column) / static_cast<double>(width) : edges[column]);
    };
    for (std::size_t c = 0; c < rows_[r].means.size(); ++c) {
      const double value = rows_[r].means[c];
      if (!std::isfinite(value)) continue;
      const double left = edge(c * block_columns_);
      const double right = edge(std::min((c + 1) * block_columns_, width));
      // A little overlap, so that no white line shows between the cells.
      drawing.rectangle(box.x + left, box.y + top, right - left + 0.15, bottom - top + 0.15,
                        sequential((value - low) / (high - low)));
    }
  }
}

void colour_bar(Drawing& drawing, Box box, double low, double high, const std::string& label) {
  constexpr int kSteps = 64;
  constexpr double kTick = 3;
  for (int i = 0; i < kSteps; ++i)
    drawing.rectangle(box.x, box.y + box.h * (kSteps - 1 - i) / kSteps, box.w, box.h / kSteps + 0.15,
                      sequential((i + 0.5) / kSteps));
  double widest = 0;
  for (const Tick& t : ticks({"", low, high, false}, 4)) {
    const double y = box.y + box.h * (1 - (t.value - low) / (high - low));
    drawing.add(Line{{{box.x + box.w, y}, {box.x + box.w + kTick, y}}, kInk, 0.8});
    drawing.add(Text{{box.x + box.w + kTick + 2, y + 0.35 * kFontSize}, t.text, kFontSize});
    widest = std::max(widest, text_width(t.text, kFontSize));
  }
  drawing.add(
      Text{{box.x + box.w + kTick + widest + 13, box.y + box.h / 2}, label, kFontSize, Anchor::middle, true});
}

}  // namespace moelab::plot

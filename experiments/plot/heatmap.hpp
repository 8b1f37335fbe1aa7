// A matrix as cells of colour, of a size that does not grow with the matrix.
#pragma once

#include "experiments/plot/axes.hpp"

#include <string>
#include <vector>

namespace moelab::plot {

// Of a matrix with more than 32,400 cells, or of several in a figure with more than 120,000 in all,
// neighbouring cells are averaged, the finite ones alone.
class Heatmap {
 public:
  // `num_panels`: heatmaps of the figure.
  Heatmap(const std::vector<std::vector<double>>& rows, std::size_t num_panels);

  // The largest value that is shown; 0 where there is none above it.
  double largest() const { return largest_; }
  // " (means of 8 x 4)", rows first; empty where every cell is shown.
  std::string note() const;
  // Row 0 at the top; NaN stay white. The colour scale goes from `low` to `high`. `edges`: where the columns
  // begin and the last one ends, as shares of the width; empty: all are as wide.
  void draw(Drawing& drawing, Box box, double low, double high, const std::vector<double>& edges = {}) const;

 private:
  struct Row {
    std::size_t width;  // of the matrix
    std::vector<double> means;
  };
  void add_blocks(const std::vector<std::vector<double>>& rows, std::size_t first);

  std::size_t num_rows_ = 0;  // of the matrix
  std::size_t block_rows_ = 1, block_columns_ = 1;
  std::vector<Row> rows_;
  double largest_ = 0;
};

// The scale of a heatmap beside it.
void colour_bar(Drawing& drawing, Box box, double low, double high, const std::string& label);

}  // namespace moelab::plot

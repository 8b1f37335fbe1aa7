// A frame with two axes inside of a drawing: maps data to points, draws ticks, labels, curves and legends.
#pragma once

#include "experiments/plot/drawing.hpp"

#include <string>
#include <vector>

namespace moelab::plot {

struct Axis {
  std::string label;  // with its unit
  double low = 0, high = 1;
  bool logarithmic = false;
};

// The axis that holds all finite values (all positive ones, if logarithmic), with a little room at the ends.
Axis axis_for(std::string label, const std::vector<double>& values, bool logarithmic = false);

// Round values on the axis, about `wanted` of them.
struct Tick {
  double value;
  std::string text;
};
std::vector<Tick> ticks(const Axis& axis, int wanted);

struct Box {
  double x, y, w, h;  // of the frame, without labels
};

// Of many points on a curve those that are seen: of each point (1/72 inch) of the width the first, the
// lowest, the highest and the last.
std::vector<Point> thinned(const std::vector<Point>& points);

class Axes {
 public:
  // Draws grid, ticks and labels.
  Axes(Drawing& drawing, Box box, Axis x, Axis y, const std::string& title = {});

  // Of values outside the axes the curve is cut; NaN interrupt it. Curves and bands of many points are
  // thinned.
  void curve(const std::vector<double>& x, const std::vector<double>& y, Colour colour, double width = 1.5,
             Dash dash = Dash::none);
  void band(const std::vector<double>& x, const std::vector<double>& low, const std::vector<double>& high,
            Colour colour);
  void marker(double x, double y, Colour colour);
  // A vertical interval with caps.
  void interval(double x, double low, double high, Colour colour);
  Point at(double x, double y) const;
  const Box& box() const { return box_; }

 private:
  void disc(Point centre, Colour colour);

  Drawing& drawing_;
  Box box_;
  Axis x_, y_;
};

struct LegendEntry {
  std::string text;
  Colour colour;
  Dash dash = Dash::none;
};
// In rows from `top` on, between x and x + width; what is longer than a row is shortened. Returns the height
// that it takes.
double legend(Drawing& drawing, double x, double top, double width, const std::vector<LegendEntry>& entries);
double legend_height(double width, const std::vector<LegendEntry>& entries);
// Of the longest entry.
double legend_width(const std::vector<LegendEntry>& entries);

inline constexpr double kFontSize = 9;

}  // namespace moelab::plot

// A picture as a list of shapes, in points (1/72 inch), origin at the top left; written as SVG, PDF or PNG.
// The same drawing gives the same bytes of SVG.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace moelab::plot {

struct Colour {
  std::uint8_t r = 0, g = 0, b = 0;
  double opacity = 1;
};
inline constexpr Colour kInk{34, 34, 34, 1};
inline constexpr Colour kGrid{222, 222, 222, 1};

// Okabe and Ito (2008): eight colours that people of any colour vision tell apart; here without black and
// yellow, which is faint on white. Repeats after six.
Colour palette(std::size_t index);
// From dark to light over [0, 1], even in lightness (anchors of matplotlib's viridis).
Colour sequential(double value);

// Lengths of dashes and gaps in points, by turns; empty for `none`.
enum class Dash : std::uint8_t { none, dashes, dots, dash_dot, dash_dot_dot };
std::span<const double> lengths_of(Dash dash);

// Of the line of that number: of 30 no two are the same, then they repeat.
struct LineStyle {
  Colour colour;
  Dash dash = Dash::none;
};
LineStyle line_style(std::size_t index);

struct Point {
  double x, y;
};

struct Line {
  std::vector<Point> points;
  Colour colour;
  double width = 1;
  Dash dash = Dash::none;
};
struct Area {
  std::vector<Point> points;
  Colour colour;
};
enum class Anchor { start, middle, end };
struct Text {
  Point at;  // on the baseline
  std::string text;
  double size = 9;
  Anchor anchor = Anchor::start;
  bool vertical = false;  // reads from the bottom up
  bool bold = false;
  Colour colour = kInk;
};
using Shape = std::variant<Line, Area, Text>;

struct Drawing {
  double width = 0, height = 0;
  std::string title;  // for readers that cannot see
  std::vector<Shape> shapes;

  void add(Shape shape) { shapes.push_back(std::move(shape)); }
  void rectangle(double x, double y, double w, double h, Colour colour);
};

// The width of a text in points, in the widest of the faces that it may be set in; a little less in others.
double text_width(const std::string& text, double size);

std::string to_svg(const Drawing& drawing);
// By the ending of the path: .svg, .pdf or .png (200 dots an inch). Error where that is another, or where the
// program was built without cairo and the ending is not .svg.
void write_drawing(const std::filesystem::path& path, const Drawing& drawing);

// XML text with <, >, &, quotes and control characters made harmless.
std::string xml_escaped(const std::string& text);

}  // namespace moelab::plot

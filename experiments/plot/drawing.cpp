#include "experiments/plot/drawing.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/utf8.hpp"
#include "experiments/plot/cairo.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab::plot {

namespace {

constexpr std::array<Colour, 6> kPalette = {Colour{0, 114, 178},   Colour{213, 94, 0},   Colour{0, 158, 115},
                                            Colour{204, 121, 167}, Colour{86, 180, 233}, Colour{230, 159, 0}};
// From ' ' to '~' in DejaVu Sans, the widest of these faces, in thousandths of the size.
constexpr std::array<int, 95> kAdvances = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr const char* kFont = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

// Two decimals, which is finer than can be seen, without trailing zeros.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string paint(const char* property, Colour c) {
  std::string text = fmt::format(" {}=\"#{:02x}{:02x}{:02x}\"", property, c.r, c.g, c.b);
  if (c.opacity < 1) text += fmt::format(" {}-opacity=\"{}\"", property, number(c.opacity));
  return text;
}

std::string point_list(const std::vector<Point>& points) {
  std::string text;
  for (const Point& p : points) text += (text.empty() ? "" : " ") + number(p.x) + "," + number(p.y);
  return text;
}

std::string svg_of(const Line& line) {
  std::string text = "<polyline points=\"" + point_list(line.points) + "\" fill=\"none\"" +
                     paint("stroke", line.colour) + " stroke-width=\"" + number(line.width) +
                     "\" stroke-linejoin=\"round\"";
  if (line.dash != Dash::none)
    text += fmt::format(" stroke-dasharray=\"{}\"", fmt::join(lengths_of(line.dash), " "));
  return text + "/>\n";
}

std::string svg_of(const Area& area) {
  return "<polygon points=\"" + point_list(area.points) + "\"" + paint("fill", area.colour) + "/>\n";
}

std::string svg_of(const Text& t) {
  constexpr std::array<const char*, 3> anchors = {"start", "middle", "end"};
  std::string text = "<text x=\"" + number(t.at.x) + "\" y=\"" + number(t.at.y) + "\" font-size=\"" +
                     number(t.size) + "\"" + paint("fill", t.colour);
  if (t.anchor != Anchor::start)
    text += fmt::format(" text-anchor=\"{}\"", anchors[static_cast<std::size_t>(t.anchor)]);
  if (t.bold) text += " font-weight=\"bold\"";
  if (t.vertical) text += " transform=\"rotate(-90 " + number(t.at.x) + " " + number(t.at.y) + ")\"";
  return text + ">" + xml_escaped(t.text) + "</text>\n";
}

}  // namespace

Colour palette(std::size_t index) { return kPalette[index % kPalette.size()]; }

std::span<const double> lengths_of(Dash dash) {
  static constexpr std::array<double, 2> dashes = {4, 3}, dots = {1.2, 1.8};
  static constexpr std::array<double, 4> dash_dot = {6, 2, 1.2, 2};
  static constexpr std::array<double, 6> dash_dot_dot = {6, 2, 1.2, 2, 1.2, 2};
  switch (dash) {
    case Dash::none:
      return {};
    case Dash::dashes:
      return dashes;
    case Dash::dots:
      return dots;
    case Dash::dash_dot:
      return dash_dot;
    case Dash::dash_dot_dot:
      return dash_dot_dot;
  }
  return {};
}

LineStyle line_style(std::size_t index) {
  constexpr std::array<Dash, 5> dashes = {Dash::none, Dash::dashes, Dash::dots, Dash::dash_dot,
                                          Dash::dash_dot_dot};
  return {palette(index), dashes[index / kPalette.size() % dashes.size()]};
}

Colour sequential(double value) {
  constexpr std::array<Colour, 9> anchors = {
      Colour{68, 1, 84},    Colour{71, 44, 122},  Colour{59, 81, 139},
      Colour{44, 113, 142}, Colour{33, 144, 141}, Colour{39, 173, 129},
      Colour{92, 200, 99},  Colour{170, 220, 50}, Colour{253, 231, 37}};
  const double position = std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 1.0) * (anchors.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(position), anchors.size() - 2);
  const double share = position - static_cast<double>(below);
  const auto mix = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(std::lerp(double{1} * a, double{1} * b, share)));
  };
  const Colour &a = anchors[below], &b = anchors[below + 1];
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b), 1};
}

void Drawing::rectangle(double x, double y, double w, double h, Colour colour) {
  add(Area{{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, colour});
}

double text_width(const std::string& text, double size) {
  double width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (utf8::continues_character(c)) continue;
    if (byte >= ' ' && byte <= '~')
      width += kAdvances[byte - std::size_t{' '}];
    else
      width += byte < 0xe0 ? 700 : 1000;
  }
  return width / 1000 * size;
}

std::string xml_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        // Control characters are not allowed in XML at all.
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          result += "\xef\xbf\xbd";
        } else {
          result += c;
        }
    }
  }
  return result;
}

std::string to_svg(const Drawing& d) {
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(d.width) +
                     "pt\" height=\"" + number(d.height) + "pt\" viewBox=\"0 0 " + number(d.width) + " " +
                     number(d.height) + "\" role=\"img\" font-family=\"" + kFont + "\">\n<title>" +
                     xml_escaped(d.title) + "</title>\n" +
                     "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (const Shape& shape : d.shapes) text += std::visit([](const auto& s) { return svg_of(s); }, shape);
  return text + "</svg>\n";
}

void write_drawing(const std::filesystem::path& path, const Drawing& drawing) {
  const std::string ending = path.extension().string();
  if (ending == ".svg") {
    replace_file(path, to_svg(drawing));
  } else if (ending == ".pdf" || ending == ".png") {
    replace_file(path, ending == ".pdf" ? to_pdf(drawing) : to_png(drawing));
  } else {
    throw ConfigError(fmt::format("'{}' does not end in .svg, .pdf or .png", path.string()));
  }
}

}  // namespace moelab::plot

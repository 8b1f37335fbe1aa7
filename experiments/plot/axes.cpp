#include "experiments/plot/axes.hpp"

#include "experiments/compare/text_table.hpp"
#include "experiments/plot/labels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace moelab::plot {

namespace {

constexpr double kTickLength = 3;
constexpr double kSmallestRange = 1e-9;  // of an axis, relative to its values
constexpr double kSwatch = 18;           // width of a line in a legend
constexpr double kRow = 13;              // height of a row of a legend

double position(const Axis& axis, double value) {
  if (axis.logarithmic)
    return (std::log(value) - std::log(axis.low)) / (std::log(axis.high) - std::log(axis.low));
  return (value - axis.low) / (axis.high - axis.low);
}

// Enough digits that neighbours differ; large numbers with k, M, G.
std::string tick_text(double value, double step) {
  if (value == 0) return "0";
  if (std::abs(value) >= 1000) {
    std::string text = with_si_prefix(value);
    const std::size_t point = text.find('.');
    if (point == std::string::npos) return text;
    const std::size_t letter = text.find_first_not_of("0123456789", point + 1);
    std::string digits = text.substr(0, letter);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    return digits + (letter == std::string::npos ? "" : text.substr(letter));
  }
  if (std::abs(value) < 1e-3) return fmt::format("{:.0e}", value);
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", value, digits);
}

std::vector<Tick> linear_ticks(double low, double high, int wanted) {
  const double raw = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor < raw) continue;
    step = power * factor;
    break;
  }
  // Counted by integers: k + 1 may be k for a large double, and a range of nothing gives steps of nothing.
  const double first = std::ceil(low / step - 1e-9);
  const double count = std::floor(high / step + 1e-9) - first;
  std::vector<Tick> result;
  for (int i = 0; i <= count && i <= 10 * wanted; ++i)
    result.push_back({(first + i) * step, tick_text((first + i) * step, step)});
  return result;
}

std::vector<Tick> log_ticks(double low, double high, int wanted) {
  std::vector<Tick> result;
  for (const auto& factors : {std::vector<double>{1}, std::vector<double>{1, 2, 5}}) {
    result.clear();
    for (double e = std::floor(std::log10(low)); e <= std::log10(high); ++e)
      for (const double f : factors) {
        const double value = f * std::pow(10, e);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
          result.push_back({value, tick_text(value, value)});
      }
    if (result.size() >= 3) break;
  }
  if (result.size() < 2) return linear_ticks(low, high, wanted);
  const std::size_t every =
      (result.size() + static_cast<std::size_t>(wanted)) / static_cast<std::size_t>(wanted + 1);
  std::vector<Tick> thinned;
  for (std::size_t i = 0; i < result.size(); i += std::max<std::size_t>(every, 1))
    thinned.push_back(result[i]);
  return thinned;
}

}  // namespace

Axis axis_for(std::string label, const std::vector<double>& values, bool logarithmic) {
  Axis axis{std::move(label), std::nan(""), std::nan(""), logarithmic};
  for (const double v : values) {
    if (!std::isfinite(v) || (logarithmic && v <= 0)) continue;
    axis.low = std::fmin(axis.low, v);
    axis.high = std::fmax(axis.high, v);
  }
  if (std::isnan(axis.low)) {
    axis.low = logarithmic ? 1 : 0;
    axis.high = logarithmic ? 10 : 1;
  } else if (logarithmic) {
    const double room = std::max(std::pow(axis.high / axis.low, 0.04), 1.02);
    axis.low /= room;
    axis.high *= room;
  } else {
    // Values that differ by rounding alone are one value.
    const double size = std::max(std::abs(axis.low), std::abs(axis.high));
    const double range = axis.high - axis.low;
    const double room = range > kSmallestRange * size ? 0.04 * range : std::max(0.05 * size, 1e-6);
    axis.low -= room;
    axis.high += room;
  }
  return axis;
}

std::vector<Tick> ticks(const Axis& axis, int wanted) {
  return axis.logarithmic ? log_ticks(axis.low, axis.high, wanted)
                          : linear_ticks(axis.low, axis.high, wanted);
}

std::vector<Point> thinned(const std::vector<Point>& points) {
  constexpr std::size_t kFew = 500;
  if (points.size() <= kFew) return points;
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    const double column = std::floor(points[begin].x);
    std::size_t end = begin + 1;
    while (end < points.size() && std::floor(points[end].x) == column) ++end;
    const auto [low, high] = std::minmax_element(points.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 points.begin() + static_cast<std::ptrdiff_t>(end),
                                                 [](const Point& p, const Point& q) { return p.y < q.y; });
    std::array<std::size_t, 4> shown = {begin, static_cast<std::size_t>(low - points.begin()),
                                        static_cast<std::size_t>(high - points.begin()), end - 1};
    std::ranges::sort(shown);
    const auto past = std::unique(shown.begin(), shown.end());
    for (auto i = shown.begin(); i != past; ++i) kept.push_back(points[*i]);
    begin = end;
  }
  return kept;
}

Axes::Axes(Drawing& drawing, Box box, Axis x, Axis y, const std::string& title)
    : drawing_(drawing), box_(box), x_(std::move(x)), y_(std::move(y)) {
  const double bottom = box.y + box.h;
  for (const Tick& t : ticks(x_, std::max(2, static_cast<int>(box.w / 55)))) {
    const double px = at(t.value, y_.low).x;
    drawing_.add(Line{{{px, box.y}, {px, bottom}}, kGrid, 0.6});
    drawing_.add(Line{{{px, bottom}, {px, bottom + kTickLength}}, kInk, 0.8});
    drawing_.add(Text{{px, bottom + kTickLength + kFontSize}, t.text, kFontSize, Anchor::middle});
  }
  double widest = 0;
  for (const Tick& t : ticks(y_, std::max(2, static_cast<int>(box.h / 35)))) {
    const double py = at(x_.low, t.value).y;
    drawing_.add(Line{{{box.x, py}, {box.x + box.w, py}}, kGrid, 0.6});
    drawing_.add(Line{{{box.x - kTickLength, py}, {box.x, py}}, kInk, 0.8});
    drawing_.add(Text{{box.x - kTickLength - 2, py + 0.35 * kFontSize}, t.text, kFontSize, Anchor::end});
    widest = std::max(widest, text_width(t.text, kFontSize));
  }
  drawing_.add(Line{{{box.x, box.y}, {box.x, bottom}, {box.x + box.w, bottom}}, kInk, 0.8});
  if (!x_.label.empty())
    drawing_.add(Text{
        {box.x + box.w / 2, bottom + kTickLength + 2.4 * kFontSize}, x_.label, kFontSize, Anchor::middle});
  if (!y_.label.empty())
    drawing_.add(Text{
        {box.x - kTickLength - widest - 8, box.y + box.h / 2}, y_.label, kFontSize, Anchor::middle, true});
  if (!title.empty())
    drawing_.add(Text{{box.x + box.w / 2, box.y - 5}, title, kFontSize, Anchor::middle, false, true});
}

Point Axes::at(double x, double y) const {
  return {box_.x + box_.w * position(x_, x), box_.y + box_.h * (1 - position(y_, y))};
}

void Axes::curve(const std::vector<double>& x, const std::vector<double>& y, Colour colour, double width,
                 Dash dash) {
  std::vector<Point> points, alone;
  const auto finish = [&] {
    if (points.size() == 1) alone.push_back(points[0]);
    if (points.size() > 1) drawing_.add(Line{thinned(points), colour, width, dash});
    points.clear();
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool shown =
        std::isfinite(y[i]) && x[i] >= x_.low && x[i] <= x_.high && y[i] >= y_.low && y[i] <= y_.high;
    if (shown) {
      points.push_back(at(x[i], y[i]));
    } else {
      finish();
    }
  }
  finish();
  for (const Point& p : thinned(alone)) disc(p, colour);
}

void Axes::band(const std::vector<double>& x, const std::vector<double>& low, const std::vector<double>& high,
                Colour colour) {
  std::vector<Point> front, back;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(low[i]) || !std::isfinite(high[i]) || x[i] < x_.low || x[i] > x_.high) continue;
    if (low[i] < y_.low || high[i] > y_.high) continue;
    front.push_back(at(x[i], high[i]));
    back.push_back(at(x[i], low[i]));
  }
  if (back.size() < 2) return;
  Area area{thinned(front), {colour.r, colour.g, colour.b, 0.2}};
  back = thinned(back);
  area.points.insert(area.points.end(), back.rbegin(), back.rend());
  drawing_.add(std::move(area));
}

void Axes::marker(double x, double y, Colour colour) { disc(at(x, y), colour); }

void Axes::disc(Point c, Colour colour) {
  constexpr double r = 2.6;
  Area area{{}, colour};
  for (int corner = 0; corner < 12; ++corner) {
    const double angle = corner * 0.5235987755982988;
    area.points.push_back({c.x + r * std::cos(angle), c.y + r * std::sin(angle)});
  }
  drawing_.add(std::move(area));
}

void Axes::interval(double x, double low, double high, Colour colour) {
  if (!std::isfinite(low) || !std::isfinite(high)) return;
  const Point a = at(x, std::max(low, y_.low)), b = at(x, std::min(high, y_.high));
  drawing_.add(Line{{a, b}, colour, 1.2});
  drawing_.add(Line{{{a.x - 3, a.y}, {a.x + 3, a.y}}, colour, 1.2});
  drawing_.add(Line{{{b.x - 3, b.y}, {b.x + 3, b.y}}, colour, 1.2});
}

namespace {

constexpr double kGap = 12;  // between two entries

double entry_width(const std::string& text) { return kSwatch + 4 + text_width(text, kFontSize); }

// Calls place(entry, text, x, row) for each entry; returns the number of rows.
template <class Place>
int flow(double width, const std::vector<LegendEntry>& entries, const Place& place) {
  std::vector<std::string> texts;
  for (const LegendEntry& e : entries) texts.push_back(e.text);
  texts = shortened(texts, width - entry_width(""), kFontSize);
  double x = 0;
  int row = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double needed = entry_width(texts[i]);
    if (x > 0 && x + needed > width) {
      x = 0;
      ++row;
    }
    place(entries[i], texts[i], x, row);
    x += needed + kGap;
  }
  return entries.empty() ? 0 : row + 1;
}

}  // namespace

double legend_height(double width, const std::vector<LegendEntry>& entries) {
  return kRow * flow(width, entries, [](const LegendEntry&, const std::string&, double, int) {});
}

double legend_width(const std::vector<LegendEntry>& entries) {
  double widest = 0;
  for (const LegendEntry& e : entries) widest = std::max(widest, entry_width(e.text));
  return widest;
}

double legend(Drawing& drawing, double x, double top, double width, const std::vector<LegendEntry>& entries) {
  return kRow * flow(width, entries, [&](const LegendEntry& e, const std::string& text, double dx, int row) {
           const double y = top + kRow * row + kRow / 2;
           drawing.add(Line{{{x + dx, y}, {x + dx + kSwatch, y}}, e.colour, 2, e.dash});
           drawing.add(Text{{x + dx + kSwatch + 4, y + 0.35 * kFontSize}, text, kFontSize});
         });
}

}  // namespace moelab::plot

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/plot/axes.hpp"
#include "experiments/plot/cairo.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/plot/heatmap.hpp"
#include "experiments/plot/power_law.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>

using namespace moelab;
using namespace moelab::plot;

namespace {

std::vector<std::string> texts(const std::vector<Tick>& all) {
  std::vector<std::string> result;
  for (const Tick& t : all) result.push_back(t.text);
  return result;
}

std::vector<Area> areas_of(const Drawing& d) {
  std::vector<Area> result;
  for (const Shape& s : d.shapes)
    if (const auto* area = std::get_if<Area>(&s)) result.push_back(*area);
  return result;
}

// Two layers of so many experts, over so many records.
RunData run_of_experts(std::size_t experts, std::int64_t records) {
  RunData data = example_run("moe", 0, 3.0, 2);
  const auto count = static_cast<std::int64_t>(experts);
  data.info.moe_layers = {{1, count, 2}, {3, count, 2}};
  data.routing.clear();
  for (std::int64_t step = 1; step <= records; ++step) {
    RoutingRecordRow row = example_routing(step);
    for (LayerRouting& layer : row.layers) {
      layer = {};
      layer.expert_tokens.assign(experts, 3);
    }
    data.routing.push_back(std::move(row));
  }
  data.statistics.coactivation.assign(2, std::vector<std::int64_t>(experts * experts, 2));
  data.statistics.expert_tokens_by_domain.assign(2, std::vector<std::int64_t>(experts * 2, 1));
  return data;
}

}  // namespace

TEST_CASE("plot ticks are round", "[plot]") {
  CHECK(texts(ticks({"", 0, 1, false}, 5)) ==
        std::vector<std::string>{"0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(ticks({"", 2.71, 3.05, false}, 4)) == std::vector<std::string>{"2.8", "2.9", "3.0"});
  CHECK(texts(ticks({"", 0, 3.1e6, false}, 4)) == std::vector<std::string>{"0", "1M", "2M", "3M"});
  CHECK(texts(ticks({"", 900, 1.2e6, true}, 5)) == std::vector<std::string>{"1k", "10k", "100k", "1M"});
  CHECK(texts(ticks({"", 1, 9, true}, 5)) == std::vector<std::string>{"1", "2", "5"});
}

TEST_CASE("plot axes hold their values", "[plot]") {
  const double nan = std::nan("");
  const Axis linear = axis_for("", {1, nan, 3});
  CHECK((linear.low < 1 && linear.low > 0.5 && linear.high > 3 && linear.high < 3.5));
  const Axis logarithmic = axis_for("", {0, 10, 1000}, true);
  CHECK((logarithmic.low < 10 && logarithmic.low > 5));
  const Axis constant = axis_for("", {2, 2});
  CHECK(constant.low < constant.high);
  const Axis empty = axis_for("", {nan});
  CHECK(empty.low < empty.high);

  Drawing d{100, 100, "", {}};
  const Axes axes(d, {10, 10, 80, 80}, {"x", 0, 10, false}, {"y", 1, 100, true});
  CHECK_THAT(axes.at(5, 10).x, WithinAbs(50, 1e-12));
  CHECK_THAT(axes.at(5, 10).y, WithinAbs(50, 1e-12));
}

TEST_CASE("plot axes of values that differ by rounding alone", "[plot]") {
  const double value = 0.1;
  for (const bool logarithmic : {false, true}) {
    INFO(logarithmic);
    const Axis axis = axis_for("", {value, std::nextafter(value, 1), std::nextafter(value, 0)}, logarithmic);
    CHECK((axis.low < 0.099 && axis.high > 0.101));
    const std::vector<Tick> shown = ticks(axis, 5);
    CHECK((shown.size() >= 2 && shown.size() <= 12));
    for (std::size_t i = 1; i < shown.size(); ++i) CHECK(shown[i].value > shown[i - 1].value);
  }
  // Axes that nobody should ask for end as well.
  CHECK(ticks({"", 0.1, std::nextafter(0.1, 1), false}, 5).size() < 60);
  CHECK(ticks({"", 1e17, 1e17, false}, 5).size() < 60);
}

TEST_CASE("plot SVG escapes what names may hold", "[plot]") {
  Drawing d{10, 10, "<script>", {}};
  d.add(Text{{1, 2}, "a < b & \"c\" \x01 ü", 9});
  const std::string svg = to_svg(d);
  CHECK_THAT(svg, Contains("<title>&lt;script&gt;</title>"));
  CHECK_THAT(svg, Contains("a &lt; b &amp; &quot;c&quot; \xef\xbf\xbd ü"));
  CHECK_THAT(svg, !Contains("<script>"));
}

TEST_CASE("plot every figure of the example is made, the same each time", "[plot]") {
  const TemporaryFolder folder;
  const ResultsFile file(write_example_results(folder.path()));
  for (const FigureKind& kind : figure_kinds()) {
    INFO(kind.name);
    const Drawing drawing = make_figure(file, kind.name, {});
    CHECK(drawing.height > 50);
    const std::string svg = to_svg(drawing);
    CHECK(svg == to_svg(make_figure(file, kind.name, {})));
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
    write_drawing(folder.path() / "x.svg", drawing);
    CHECK(read_file(folder.path() / "x.svg") == svg);
    try {
      CHECK(to_png(drawing).substr(1, 3) == "PNG");
      CHECK(to_pdf(drawing).substr(0, 4) == "%PDF");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Contains("built without cairo"));
    }
  }
  REQUIRE_THROWS_WITH(make_figure(file, "pie", {}), Contains("loss, load"));
  REQUIRE_THROWS_WITH(write_drawing(folder.path() / "x.gif", make_figure(file, "loss", {})),
                      Contains(".svg, .pdf or .png"));
  FigureOptions options;
  options.run = "dense-s0";
  REQUIRE_THROWS_WITH(make_figure(file, "load", options), Contains("dense-s0") && Contains("has no routing"));
  options = {};
  options.x = "epochs";
  REQUIRE_THROWS_WITH(make_figure(file, "loss", options), Contains("'epochs' is no axis"));
}

TEST_CASE("plot curves stand where the values are", "[plot]") {
  const TemporaryFolder folder;
  RunData data = example_run("dense", 0, 3.0, 2);
  write_run_file(folder.path() / "run.h5", data);
  const Drawing d = loss_figure(ResultsFile(folder.path() / "run.h5"), {});
  // Two evaluations, at 100 tokens (loss 4) and 200 tokens (loss 3): the one line with two points that is not
  // grid.
  const Line* curve = nullptr;
  for (const Shape& s : d.shapes)
    if (const auto* line = std::get_if<Line>(&s); line && line->width == 1.6) curve = line;
  REQUIRE(curve);
  REQUIRE(curve->points.size() == 2);
  CHECK(curve->points[0].x < curve->points[1].x);
  CHECK(curve->points[0].y < curve->points[1].y);  // y runs downwards: the loss falls
}

TEST_CASE("plot bars at equal compute", "[plot]") {
  const TemporaryFolder folder;
  const ResultsFile file(write_example_study(folder.path()));
  // Eight evaluations at 100 tokens each; the smallest variant spends 3 * 8000 FLOPs a token.
  CHECK_THAT(common_flops(file, "eval/loss"), WithinAbs(3 * 8000 * 800.0, 1));
  CHECK(std::isnan(common_flops(file, "eval/none")));
  const std::string svg = to_svg(isoflop_figure(file, {}));
  CHECK_THAT(svg, Contains("held-out loss (nat) at 19.2M training FLOPs") && Contains("95 % interval"));
  FigureOptions options;
  options.at = parse_at("flops=1e7");
  CHECK_THAT(to_svg(isoflop_figure(file, options)), Contains("at 10.0M training FLOPs"));
  options.at = parse_at("tokens=1e9");
  CHECK_THROWS_WITH(bars_figure(file, options), Contains("1.00G tokens"));
}

TEST_CASE("plot the power law is found again", "[plot]") {
  std::vector<double> size, loss;
  for (const double n : {1e5, 3e5, 1e6, 3e6, 1e7, 1e8}) {
    size.push_back(n);
    loss.push_back(1.7 + 400 * std::pow(n, -0.34));
  }
  const auto law = fit_power_law(size, loss);
  REQUIRE(law);
  CHECK_THAT(law->alpha, WithinAbs(0.34, 0.01));
  CHECK_THAT(law->c, WithinAbs(1.7, 0.01));
  CHECK_THAT(law->at(1e6), WithinAbs(1.7 + 400 * std::pow(1e6, -0.34), 1e-3));
  CHECK((law->alpha_interval.low <= 0.341 && law->alpha_interval.high >= 0.339));
  CHECK_FALSE(fit_power_law(std::vector<double>{1, 2, 3, 3}, std::vector<double>{3, 2, 1, 1}));
  CHECK_FALSE(fit_power_law(std::vector<double>{100, 101, 102, 150}, std::vector<double>{3, 2, 1, 1}));
}

TEST_CASE("plot scaling fits a power law a variant", "[plot]") {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> paths;
  const auto add = [&](const std::string& variant, double size, double loss) {
    RunData run = example_run(variant, 0, loss);
    run.info.name += "-p" + std::to_string(paths.size());
    run.info.sweep_point = "{\"model.d_model\":\"" + std::to_string(paths.size()) + "\"}";
    run.info.accounting.params_total = static_cast<std::int64_t>(size);
    run.info.accounting.params_active = size;
    paths.push_back(folder.path() / (run.info.name + ".h5"));
    write_run_file(paths.back(), run);
  };
  // 1 + 100 N^-0.5 and 1 + 60 N^-0.6, which no one law goes through.
  for (const double n : {1e3, 3e3, 1e4, 3e4, 1e5}) add("dense", n, 1 + 100 * std::pow(n, -0.5));
  for (const double n : {1e3, 3e3, 1e4, 3e4, 1e5}) add("moe", n, 1 + 60 * std::pow(n, -0.6));
  add("small", 1e3, 5);
  write_results_file(folder.path() / "results.h5", {}, paths);
  const std::string svg = to_svg(scaling_figure(ResultsFile(folder.path() / "results.h5"), {}));
  CHECK_THAT(svg, Contains("dense: 1 + 100 C^-0.5") && Contains("moe: 1 + 60") && Contains("C^-0.6") &&
                      Contains("small: fewer than four sizes"));
}

TEST_CASE("plot a heatmap shows each cell, or means of neighbours where there are too many", "[plot]") {
  const double nan = std::nan("");
  Drawing few{100, 100, "", {}};
  const Heatmap small({{0, 1}, {nan, 3}}, 1);
  CHECK(small.note().empty());
  CHECK(small.largest() == 3);
  small.draw(few, {0, 0, 10, 10}, 0, 3);
  REQUIRE(areas_of(few).size() == 3);
  CHECK(areas_of(few)[2].points[0].x == 5);
  CHECK(areas_of(few)[2].points[0].y == 5);

  // The upper half 1, the lower 0, every seventh cell unknown; 1,003 is no multiple of a block.
  std::vector<std::vector<double>> rows(1002, std::vector<double>(1003, 0));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < rows[r].size(); ++c) rows[r][c] = (r + c) % 7 == 0 ? nan : r < 501 ? 1 : 0;
  const Heatmap large(rows, 1);
  CHECK(large.note() == " (means of 6 x 6)");
  CHECK(large.largest() == 1);
  Drawing many{100, 100, "", {}};
  large.draw(many, {0, 0, 100, 100}, 0, 1);
  const std::vector<Area> areas = areas_of(many);
  CHECK(areas.size() == 167 * 168);
  double covered = 0;
  for (const Area& area : areas) {
    const Point a = area.points[0], b = area.points[2];
    covered += (b.x - a.x - 0.15) * (b.y - a.y - 0.15);
    const double middle = (a.y + b.y) / 2;
    if (std::abs(middle - 50) < 1) continue;  // the block that lies across
    CHECK(area.colour.g == sequential(middle < 50 ? 1 : 0).g);
  }
  CHECK_THAT(covered, WithinAbs(100 * 100, 1e-6));

  // All heatmaps of a figure share its cells; a short side keeps its own.
  std::size_t cells = 0;
  for (const auto& [height, width] :
       {std::pair<std::size_t, std::size_t>{64, 2000}, {2000, 64}, {500, 500}, {3, 90000}}) {
    Drawing d{100, 100, "", {}};
    const Heatmap panel(std::vector<std::vector<double>>(height, std::vector<double>(width, 1)), 12);
    panel.draw(d, {0, 0, 10, 10}, 0, 1);
    INFO(height << " x " << width << panel.note());
    CHECK(areas_of(d).size() <= 10000);
    CHECK(areas_of(d).size() >= 4000);
    cells += areas_of(d).size();
  }
  CHECK(cells <= 40000);
}

TEST_CASE("plot cells of the load lie where their records are on the axis", "[plot]") {
  const TemporaryFolder folder;
  RunData data = run_of_experts(2, 0);
  const std::vector<double> steps = {1, 50, 100, 118};
  for (const double step : steps) {
    RoutingRecordRow row = example_routing(static_cast<std::int64_t>(step));
    for (LayerRouting& layer : row.layers) {
      layer = {};
      layer.expert_tokens = {3, 3};
    }
    data.routing.push_back(std::move(row));
  }
  write_run_file(folder.path() / "run.h5", data);
  const Drawing d = load_figure(ResultsFile(folder.path() / "run.h5"), {});
  // The labels of the axis say where a step is.
  const auto at = [&](const std::string& text) {
    for (const Shape& s : d.shapes)
      if (const auto* t = std::get_if<Text>(&s); t && t->text == text && t->anchor == Anchor::middle)
        return t->at.x;
    throw Error("there is no label " + text);
  };
  const double x50 = at("50"), x100 = at("100"), point = (x100 - x50) / 50;  // of a step
  const std::vector<double> edges = {1, 25.5, 75, 109, 118};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Area cell = areas_of(d).at(i);
    INFO(steps[i]);
    CHECK_THAT(cell.points[0].x, WithinAbs(x50 + (edges[i] - 50) * point, 1e-6));
    CHECK_THAT(cell.points[1].x - 0.15, WithinAbs(x50 + (edges[i + 1] - 50) * point, 1e-6));
  }
}

TEST_CASE("plot figures of very many experts and records stay small", "[plot]") {
  const TemporaryFolder folder;
  constexpr std::size_t kExperts = 700;
  write_run_file(folder.path() / "run.h5", run_of_experts(kExperts, 600));
  const ResultsFile file(folder.path() / "run.h5");
  const std::string pairs = to_svg(coactivation_figure(file, {}));
  CHECK_THAT(pairs, Contains("layer 3 (means of 4 x 4)"));
  CHECK(pairs.size() < 12'000'000);
  const std::string load = to_svg(load_figure(file, {}));
  CHECK_THAT(load, Contains("layer 1 (means of 4 x 4)"));
  CHECK(load.size() < 12'000'000);

  // Every expert and domain of 60 would be 84,000 bars.
  RunData many = run_of_experts(kExperts, 2);
  many.info.domains.assign(60, "domain");
  for (std::size_t i = 0; i < 60; ++i) many.info.domains[i] += std::to_string(i);
  many.statistics.expert_tokens_by_domain.assign(2, std::vector<std::int64_t>(kExperts * 60, 1));
  for (EvalRecord& r : many.eval) r.loss_by_domain.assign(60, 3.0);
  write_run_file(folder.path() / "many.h5", many);
  const Drawing bars = domains_figure(ResultsFile(folder.path() / "many.h5"), {});
  CHECK(areas_of(bars).size() == 2 * 7 * 40);
  CHECK_THAT(to_svg(bars),
             Contains("the first 40 of 60 domains") && Contains("layer 1 (means of 100 experts)"));
  // An even load of all experts, be they averaged or not: the bars reach the uniform line.
  for (const Area& bar : areas_of(bars))
    CHECK_THAT(bar.points[2].y - bar.points[0].y, WithinAbs(80 / 1.08, 1e-6));
}

TEST_CASE("plot bars of experts by domain can be seen, and lie over the number of their expert", "[plot]") {
  const TemporaryFolder folder;
  for (const std::size_t experts : {64U, 148U, 149U, 500U, 4096U}) {
    RunData run = run_of_experts(experts, 2);
    run.info.moe_layers.resize(1);
    for (RoutingRecordRow& row : run.routing) row.layers.resize(1);
    run.statistics = {};
    run.samples = {};
    run.statistics.expert_tokens_by_domain = {std::vector<std::int64_t>(experts * 2, 1)};
    write_run_file(folder.path() / "run.h5", run);
    const Drawing d = domains_figure(ResultsFile(folder.path() / "run.h5"), {});
    const std::vector<Area> bars = areas_of(d);
    INFO(experts);
    CHECK(bars.size() <= 2 * 148);
    CHECK(bars.size() >= std::min<std::size_t>(2 * experts, 2 * 74));
    // 278 points of width; of each cell the middle 80 %. The last one may hold fewer experts.
    const std::size_t block = (experts + 147) / 148;
    const bool is_told =
        to_svg(d).find("means of " + std::to_string(block) + " experts") != std::string::npos;
    CHECK(is_told == (block > 1));
    for (std::size_t i = 0; i < bars.size(); ++i) {
      const double cell = 278.0 * static_cast<double>(block) / static_cast<double>(experts);
      const double left = 50 + cell * (static_cast<double>(i / 2) + 0.1);
      if (i + 2 < bars.size()) CHECK(bars[i].points[1].x - bars[i].points[0].x >= 0.74);
      if (i % 2 == 0 && i + 2 < bars.size()) CHECK_THAT(bars[i].points[0].x, WithinAbs(left, 1e-6));
      CHECK(bars[i].points[1].x <= 50 + 278);
    }
  }
}

TEST_CASE("plot a curve of very many points is thinned, and keeps its extremes", "[plot]") {
  constexpr std::size_t kPoints = 100'000;
  std::vector<double> x, y;
  for (std::size_t i = 0; i < kPoints; ++i) {
    x.push_back(static_cast<double>(i));
    y.push_back(i == 54'321 ? 99 : i == 76'543 ? 1 : 50 + 10 * std::sin(static_cast<double>(i)));
  }
  Drawing d{300, 100, "", {}};
  Axes axes(d, {0, 0, 300, 100}, {"", 0, kPoints, false}, {"", 0, 100, false});
  axes.curve(x, y, kInk, 1.6);
  axes.band(x, y, y, kInk);
  const auto* area = std::get_if<Area>(&d.shapes.back());
  REQUIRE(area);
  CHECK(area->points.size() <= 2 * 4 * 301);
  const auto* line = std::get_if<Line>(&d.shapes[d.shapes.size() - 2]);
  REQUIRE(line);
  CHECK(line->points.size() <= 4 * 301);
  const auto has = [&](std::size_t i) {
    const Point p = axes.at(x[i], y[i]);
    return std::ranges::any_of(line->points, [&](const Point& q) { return q.x == p.x && q.y == p.y; });
  };
  CHECK((has(0) && has(54'321) && has(76'543) && has(kPoints - 1)));
  CHECK(std::ranges::is_sorted(line->points, {}, &Point::x));
  // Few points are all kept.
  const std::vector<Point> few(400, Point{1, 2});
  CHECK(thinned(few).size() == 400);
}

TEST_CASE("plot a value between two that are unknown is a dot at its place", "[plot]") {
  const double nan = std::nan("");
  Drawing d{100, 100, "", {}};
  Axes axes(d, {0, 0, 100, 100}, {"", 0, 10, false}, {"", 0, 10, false});
  axes.curve({1, 2, 3, 4, 5}, {nan, nan, 7, nan, 5}, kInk);
  const std::vector<Area> dots = areas_of(d);
  REQUIRE(dots.size() == 2);
  CHECK_THAT(dots[0].points[0].y, WithinAbs(axes.at(3, 7).y, 1e-9));
  CHECK_THAT(dots[1].points[0].y, WithinAbs(axes.at(5, 5).y, 1e-9));
}

TEST_CASE("plot tokens are those of text: rows of features have none to show", "[plot]") {
  const TemporaryFolder folder;
  RunData data = example_run("moe", 0, 3.0);
  write_run_file(folder.path() / "text.h5", data);
  CHECK_FALSE(make_figure(ResultsFile(folder.path() / "text.h5"), "tokens", {}).shapes.empty());
  data.samples.token_id.assign(6, -1);
  write_run_file(folder.path() / "features.h5", data);
  CHECK_THROWS_WITH(make_figure(ResultsFile(folder.path() / "features.h5"), "tokens", {}),
                    Contains("no text"));
}

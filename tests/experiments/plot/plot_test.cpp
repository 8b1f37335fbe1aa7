#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/plot/axes.hpp"
#include "experiments/plot/cairo.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/plot/power_law.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>

using namespace moelab;
using namespace moelab::plot;

namespace {

std::vector<std::string> texts(const std::vector<Tick>& all) {
  std::vector<std::string> result;
  for (const Tick& t : all) result.push_back(t.text);
  return result;
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

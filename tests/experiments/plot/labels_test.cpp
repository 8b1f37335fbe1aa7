#include "experiments/plot/labels.hpp"

#include "core/utf8.hpp"
#include "experiments/plot/figures.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <set>
#include <string_view>

using namespace moelab;
using namespace moelab::plot;

namespace {

bool has_whole_characters(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8::first_character(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

TEST_CASE("plot labels that are too long are cut inside, and stay different", "[plot]") {
  const std::vector<std::string> few = {"dense", "moe"};
  CHECK(shortened(few, 100, 9) == few);
  // What differs may stand in front, at the end, anywhere between, or nowhere but in the middle.
  const std::string filler(60, 'x'), middle(30, 'y');
  std::string wide;  // any cut is beside characters of several bytes
  for (int i = 0; i < 40; ++i) wide += "ä→";
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"a" + filler, "b" + filler},
        {filler + "1", filler + "2", "short"},
        {"moe " + std::string(9, 'a') + "1" + filler, "moe " + std::string(9, 'a') + "2" + filler},
        {filler + middle + "1" + middle + filler, filler + middle + "2" + middle + filler},
        {filler + "ä", filler + "ö"},
        {wide + "1", wide + "2"},
        {"1" + wide, "2" + wide}}) {
    const std::vector<std::string> cut = shortened(texts, 120, 9);
    REQUIRE(cut.size() == texts.size());
    for (std::size_t i = 0; i < cut.size(); ++i) {
      INFO(cut[i]);
      CHECK(text_width(cut[i], 9) <= 120);
      CHECK(std::ranges::count(cut, cut[i]) == 1);
      if (text_width(texts[i], 9) > 120) CHECK_THAT(cut[i], Contains("…"));
      CHECK(has_whole_characters(cut[i]));
    }
  }
  // The same text is the same label, as of a variant in two places.
  const std::vector<std::string> same = shortened({filler, filler}, 120, 9);
  CHECK(same[0] == same[1]);
}

TEST_CASE("plot labels of a sweep are whole or different, and inside of the figure", "[plot]") {
  const TemporaryFolder folder;
  for (const std::size_t length : {0U, 30U, 200U}) {
    std::vector<std::filesystem::path> paths;
    for (int point = 0; point < 26; ++point) {
      RunData run = example_run("moe_e8k2_" + std::string(length, 'n'), 0, 3.0);
      run.info.name = "run-p" + std::to_string(point);
      run.info.sweep_point =
          R"({"model.ffn.experts.d_ff":")" + std::to_string(point) + R"(","train.optimizer.lr":"3e-3"})";
      paths.push_back(folder.path() / (run.info.name + ".h5"));
      write_run_file(paths.back(), run);
    }
    write_results_file(folder.path() / "results.h5", {}, paths);
    const ResultsFile file(folder.path() / "results.h5");
    INFO(length);
    for (const Drawing& d : {bars_figure(file, {}), loss_figure(file, {})}) {
      CHECK(d.width <= 520);
      std::set<std::string> labels;
      for (const Shape& s : d.shapes) {
        const auto* text = std::get_if<Text>(&s);
        if (text == nullptr || !text->text.starts_with("moe_e8k2_")) continue;
        labels.insert(text->text);
        const double width = text_width(text->text, text->size);
        const double left = text->anchor == Anchor::end ? text->at.x - width : text->at.x;
        INFO(text->text);
        CHECK(left >= 0);
        CHECK(left + width <= d.width);
        if (length == 0) CHECK_THAT(text->text, Contains("d_ff=") && Contains("lr=3e-3"));
      }
      CHECK(labels.size() == 26);
    }
    // Of 26 lines no two look the same, neither on the axes nor in the legend.
    const Drawing loss = loss_figure(file, {});
    for (const double width : {1.6, 2.0}) {
      std::set<std::string> styles;
      for (const Shape& s : loss.shapes)
        if (const auto* line = std::get_if<Line>(&s); line && line->width == width) {
          Drawing one{1, 1, "", {}};
          Line here = *line;
          here.points = {};
          one.add(here);
          styles.insert(to_svg(one));
        }
      CHECK(styles.size() == 26);
    }
  }
}

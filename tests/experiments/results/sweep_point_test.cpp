#include "experiments/results/sweep_point.hpp"

#include "experiments/results/short_names.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;

namespace {

using Points = std::vector<SweepSettings>;

}  // namespace

TEST_CASE("sweep point settings are read in the order of the file", "[sweep_point]") {
  CHECK(sweep_settings(R"({"z":"1e-3","a":2})") == SweepSettings{{"z", "1e-3"}, {"a", "2"}});
  CHECK(sweep_settings("{}").empty());
  CHECK(sweep_settings("").empty());
}

TEST_CASE("sweep points belong together by the settings that both have", "[sweep_point]") {
  const Points rates = {{{"lr", "1"}}, {{"lr", "2"}}};
  CHECK(same_point({{"lr", "2"}}, rates) == 1U);
  CHECK(same_point({{"count", "8"}, {"lr", "2"}}, rates) == 1U);
  CHECK_FALSE(same_point({{"lr", "3"}}, rates));
  CHECK_FALSE(same_point({{"count", "8"}}, rates));
  CHECK_FALSE(same_point({}, rates));
  // A baseline that is not swept is compared with everything.
  CHECK(same_point({{"lr", "3"}}, Points{{}}) == 0U);
  CHECK(same_point({}, Points{{}}) == 0U);
  CHECK_FALSE(same_point({}, Points{}));
}

TEST_CASE("sweep points of a list, where each variant has a width of its own", "[sweep_point]") {
  const Points dense = {{{"d_model", "64"}, {"d_ff", "176"}}, {{"d_model", "96"}, {"d_ff", "264"}}};
  CHECK(same_point({{"d_model", "96"}, {"experts.d_ff", "132"}}, dense) == 1U);
  // Two dense widths at one width of the model: which one is meant cannot be known.
  const Points two = {{{"d_model", "64"}, {"d_ff", "176"}}, {{"d_model", "64"}, {"d_ff", "352"}}};
  CHECK_FALSE(same_point({{"d_model", "64"}, {"experts.d_ff", "88"}}, two));
  // One that the run has all settings of is nearer, and of those the one with most.
  const Points nested = {
      {{"d_model", "64"}}, {{"d_model", "64"}, {"lr", "1"}}, {{"d_model", "64"}, {"z", "0"}}};
  CHECK(same_point({{"d_model", "64"}, {"lr", "1"}}, nested) == 1U);
  CHECK(same_point({{"d_model", "64"}}, nested) == 0U);
}

TEST_CASE("names are as short as tells them apart", "[short_names]") {
  const auto shortest = [](const std::vector<std::string>& names) {
    std::vector<std::vector<std::string>> parts;
    for (const std::string& name : names) parts.push_back(parts_of(name, '.'));
    return shortest_names(parts, ".");
  };
  using Names = std::vector<std::string>;
  CHECK(shortest({"train.optimizer.lr", "model.d_ff"}) == Names{"lr", "d_ff"});
  CHECK(shortest({"a.b.width", "a.c.width", "a.c.depth"}) == Names{"b.width", "c.width", "depth"});
  CHECK(shortest({"width", "a.width"}) == Names{"width", "a.width"});
  CHECK(shortest({"a.x", "a.x"}) == Names{"x", "x"});
  CHECK(shortest({}).empty());
}

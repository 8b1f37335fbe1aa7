#include "experiments/compare/efficiency.hpp"

#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;

TEST_CASE("efficiency the cost of a loss is interpolated on the curve", "[efficiency]") {
  const CostCurve curve{{0, 10, 1000, 2000}, {5, 4, 2, 1}};
  CHECK_THAT(cost_to_reach(curve, 3), WithinAbs(100, 1e-9));   // halfway between 10 and 1000 in the logarithm
  CHECK_THAT(cost_to_reach(curve, 4.5), WithinAbs(5, 1e-12));  // from 0 there is no logarithm
  CHECK_THAT(cost_to_reach(curve, 2), WithinAbs(1000, 1e-9));
  CHECK(std::isnan(cost_to_reach(curve, 0.5)));  // never
  CHECK(std::isnan(cost_to_reach(curve, 5)));    // from the first evaluation on
  CHECK(std::isnan(cost_to_reach({}, 1)));
}

TEST_CASE("efficiency uses the lowest loss so far", "[efficiency]") {
  // It rises in between, and one evaluation is missing.
  const CostCurve curve{{10, 100, 1000, 5000, 10000}, {4, 3, 3.5, std::nan(""), 2}};
  CHECK_THAT(cost_to_reach(curve, 2.5), WithinAbs(1000, 1e-9));  // sqrt(100 * 10000)
}

TEST_CASE("efficiency ratio at equal loss", "[efficiency]") {
  const CostCurve dense{{100, 1000, 10000}, {4, 3, 2}};
  SECTION("a variant that needs a tenth everywhere gains ten") {
    const CostCurve moe{{10, 100, 1000}, {4, 3, 2}};
    CHECK_THAT(cost_ratio(dense, moe), WithinAbs(10, 1e-9));
    CHECK_THAT(cost_ratio(moe, dense), WithinAbs(0.1, 1e-9));
  }
  SECTION("a better variant is measured at the baseline's best loss") {
    const CostCurve moe{{100, 1000, 10000}, {4, 2, 1}};
    CHECK_THAT(cost_ratio(dense, moe), WithinAbs(10, 1e-9));
  }
  SECTION("curves that do not overlap") {
    const CostCurve moe{{100, 1000}, {9, 8}};
    CHECK(std::isnan(cost_ratio(dense, moe)));
  }
}

TEST_CASE("efficiency the size of equal loss is read between sizes", "[efficiency]") {
  const CostCurve curve = size_curve({{400, 2.0}, {100, 3.5}, {100, 3.0}, {1600, 1.5}});
  CHECK(curve.cost == std::vector<double>{100, 400, 1600});
  CHECK(curve.loss == std::vector<double>{3.0, 2.0, 1.5});
  CHECK_THAT(cost_to_reach(curve, 2.5), WithinAbs(200, 1e-9));  // halfway in the logarithm
  CHECK(std::isnan(cost_to_reach(size_curve({{100, 3.0}}), 2.5)));
}

TEST_CASE("efficiency mean over seeds is geometric", "[efficiency]") {
  const Ratio ratio = mean_ratio(std::vector<double>{1, 4, 2, std::nan("")}, 0.95);
  CHECK_THAT(ratio.mean, WithinAbs(2, 1e-12));
  CHECK(ratio.num_not_reached == 1);
  // Logarithms of base 2 are 0, 1, 2: mean 1, standard deviation 1.
  CHECK_THAT(std::log2(ratio.t.high), WithinAbs(1 + 4.302652729911275 / std::sqrt(3.0), 1e-8));
  CHECK(std::isnan(mean_ratio(std::vector<double>{1, 2}, 0.95).t.low));
  CHECK(std::isnan(mean_ratio(std::vector<double>{}, 0.95).mean));
}

#include "experiments/compare/statistics.hpp"

#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;

// Expected values are by hand, from tables, or from scipy 1.10 (the call is beside them).
TEST_CASE("statistics of three values by hand", "[statistics]") {
  const std::vector<double> x = {1, 2, 6};
  CHECK_THAT(mean(x), WithinAbs(3, 1e-15));
  CHECK_THAT(standard_deviation(x), WithinAbs(std::sqrt(7.0), 1e-15));
  // t_{0.975, 2} = 4.302652729911275 (any table: 4.303)
  const double half = 4.302652729911275 * std::sqrt(7.0 / 3.0);
  CHECK_THAT(t_interval(x, 0.95).low, WithinAbs(3 - half, 1e-8));
  CHECK_THAT(t_interval(x, 0.95).high, WithinAbs(3 + half, 1e-8));
}

TEST_CASE("statistics t-test against scipy", "[statistics]") {
  const std::vector<double> x = {-0.21, -0.17, -0.05, -0.3, 0.02};
  // scipy.stats.ttest_1samp(x, 0).pvalue; scipy.stats.t.interval(0.9, 4, x.mean(), scipy.stats.sem(x))
  CHECK_THAT(t_test_p_value(x), WithinAbs(0.06753404175546548, 1e-12));
  CHECK_THAT(t_interval(x, 0.9).low, WithinAbs(-0.26360873264223894, 1e-8));
  CHECK_THAT(t_interval(x, 0.9).high, WithinAbs(-0.020391267357761075, 1e-8));
}

TEST_CASE("statistics give no interval of fewer than three values", "[statistics]") {
  const std::vector<double> two = {1, 2}, none;
  CHECK(std::isnan(t_interval(two, 0.95).low));
  CHECK(std::isnan(bootstrap_interval(two, 0.95).high));
  CHECK(std::isnan(t_test_p_value(two)));
  CHECK(std::isnan(mean(none)));
  CHECK(std::isnan(standard_deviation(std::vector<double>{1})));
}

TEST_CASE("statistics bootstrap interval", "[statistics]") {
  // Resampled means of {0, 0, 0, 1} are Binomial(4, 1/4) / 4: P(0) = 0.316, P(<= 1/4) = 0.738, P(<= 1/2) =
  // 0.949.
  const std::vector<double> x = {0, 1, 0, 0};
  CHECK(bootstrap_interval(x, 0.6).low == 0);       // the 20 % point
  CHECK(bootstrap_interval(x, 0.6).high == 0.5);    // the 80 % point
  CHECK(bootstrap_interval(x, 0.95).high == 0.75);  // the 97.5 % point; P(<= 3/4) = 0.996
  const std::vector<double> equal = {2, 2, 2};
  CHECK(bootstrap_interval(equal, 0.95).low == 2);
  CHECK(t_test_p_value(equal) == 0);
  CHECK(t_test_p_value(std::vector<double>{0, 0, 0}) == 1);
}

TEST_CASE("statistics Holm's correction", "[statistics]") {
  // Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, never falling: 0.02, 0.03, 0.06, 0.06.
  const double nan = std::nan("");
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{0.01, nan, 0.04, 0.03, 0.005});
  CHECK_THAT(adjusted[0], WithinAbs(0.03, 1e-15));
  CHECK(std::isnan(adjusted[1]));
  CHECK_THAT(adjusted[2], WithinAbs(0.06, 1e-15));
  CHECK_THAT(adjusted[3], WithinAbs(0.06, 1e-15));
  CHECK_THAT(adjusted[4], WithinAbs(0.02, 1e-15));
  CHECK(holm_adjusted(std::vector<double>{0.9, 0.8})[1] == 1);
}

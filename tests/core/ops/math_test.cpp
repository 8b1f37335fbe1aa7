#include "core/ops/math.hpp"

#include "tests/support/catch.hpp"

#include <limits>
#include <vector>

using namespace moelab;

// Against the double functions of the standard library.
TEST_CASE("exp of a float is right to two units in the last place", "[math]") {
  double worst = 0;
  for (float x = -87.0F; x < 88.7F; x += 0.000917F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(math::exp(x)) / exact - 1));
  }
  CHECK(worst < 2 * 0x1.0p-23);
  CHECK(math::exp(0.0F) == 1.0F);
}

TEST_CASE("exp keeps its limits", "[math]") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(math::exp(inf) == inf);
  CHECK(math::exp(100.0F) == inf);
  CHECK(math::exp(-inf) == 0.0F);
  CHECK(math::exp(-200.0F) == 0.0F);
  CHECK(math::exp(88.0F) < inf);
  CHECK(std::isnan(math::exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("erf of a float is right to 4e-7 everywhere", "[math]") {
  double worst = 0;
  for (float x = -6.0F; x < 6.0F; x += 0.0000913F) {
    worst = std::max(worst, std::abs(static_cast<double>(math::erf(x)) - std::erf(static_cast<double>(x))));
  }
  CHECK(worst < 4e-7);
  CHECK(math::erf(0.0F) == 0.0F);
  CHECK(math::erf(50.0F) == 1.0F);
  CHECK(std::isnan(math::erf(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("sums and maxima visit every entry, at any length and alignment", "[math]") {
  std::vector<Scalar> x(300);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Scalar>(i + 1);
  for (Index begin = 0; begin < 3; ++begin) {
    for (Index n = 1; n <= 200; ++n) {
      const Scalar* from = x.data() + begin;
      // Whole numbers: exact in any order.
      REQUIRE(math::sum_entries(n, [=](Index i) { return from[i]; }) ==
              static_cast<Scalar>(n * begin + n * (n + 1) / 2));
      REQUIRE(math::largest_entry(from, n) == from[n - 1]);
      std::vector<Scalar> falling(from, from + n);
      std::reverse(falling.begin(), falling.end());
      REQUIRE(math::largest_entry(falling.data(), n) == from[n - 1]);
    }
  }
  CHECK(math::sum_entries(0, [](Index) { return Scalar{1}; }) == 0);
}

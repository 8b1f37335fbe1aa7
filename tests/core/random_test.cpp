#include "core/random.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Random123/philox.h>

using namespace moelab;

TEST_CASE("Philox gives the published known answer", "[random]") {
  // kat_vectors of Random123: philox4x32-10, counter and key all zero.
  const auto r = r123::Philox4x32{}({{0, 0, 0, 0}}, {{0, 0}});
  CHECK(r[0] == 0x6627e8d5U);
}

TEST_CASE("a draw depends on seed, name, step and index alone", "[random]") {
  const random::Stream a(7, "dropout/layers.0", 3);
  const random::Stream b(7, "dropout/layers.0", 3);
  CHECK(a.bits(12345) == b.bits(12345));
  CHECK(a.bits(0) != a.bits(1));
  CHECK(a.bits(0) != random::Stream(8, "dropout/layers.0", 3).bits(0));
  CHECK(a.bits(0) != random::Stream(7, "dropout/layers.1", 3).bits(0));
  CHECK(a.bits(0) != random::Stream(7, "dropout/layers.0", 4).bits(0));
}

TEST_CASE("uniform and normal draws have the right moments", "[random]") {
  const random::Stream stream(1, "moments");
  const int n = 200000;
  double mean = 0, square = 0, normal_mean = 0, normal_square = 0, normal_fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform(static_cast<std::uint64_t>(i));
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    const double z = stream.normal(static_cast<std::uint64_t>(i));
    mean += u / n, square += u * u / n;
    normal_mean += z / n, normal_square += z * z / n, normal_fourth += z * z * z * z / n;
  }
  // Five standard errors.
  CHECK(std::abs(mean - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(square - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / n));
  CHECK(std::abs(normal_mean) < 5 / std::sqrt(n));
  CHECK(std::abs(normal_square - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(normal_fourth - 3) < 5 * std::sqrt(96.0 / n));
}

TEST_CASE("a permutation holds each index once and differs by step", "[random]") {
  const auto p = random::permutation(1000, random::Stream(1, "shuffle", 0));
  auto sorted = p;
  std::sort(sorted.begin(), sorted.end());
  for (Index i = 0; i < 1000; ++i) REQUIRE(sorted[static_cast<std::size_t>(i)] == i);
  CHECK(p != random::permutation(1000, random::Stream(1, "shuffle", 1)));
  CHECK(random::permutation(0, random::Stream(1, "shuffle")).empty());
}

TEST_CASE("below stays below its bound and reaches every value", "[random]") {
  const random::Stream stream(2, "below");
  std::vector<int> seen(7);
  for (std::uint64_t i = 0; i < 7000; ++i) ++seen.at(stream.below(i, 7));
  for (const int count : seen) CHECK(std::abs(count - 1000) < 5 * std::sqrt(1000.0));
}

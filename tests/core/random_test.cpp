#include "core/random.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace moelab;

TEST_CASE("draws are those of Philox 4x32-10 with the counter (index, step), keyed by seed and name",
          "[random]") {
  // From the algorithm of the paper and FNV-1a, written down in another language, which gives the three known
  // answers of Random123's kat_vectors.
  const random::Stream dropout(7, "dropout/layers.0", 3);
  CHECK(dropout.bits(12345) == 0x738efeddc851de5dU);
  CHECK(dropout.uniform(12345) == 0.4514006892644099);
  CHECK(dropout.below(12345, 1000) == 451);
  CHECK(random::Stream(0, "").bits(0) == 0x35c2b449bf928b18U);
  // All 64 bits of seed, step and index count.
  const random::Stream head((std::uint64_t{1} << 63) + 5, "init/head", (std::uint64_t{1} << 40) + 1);
  CHECK(head.bits((std::uint64_t{1} << 35) + 9) == 0xfbcf968bd36ef53dU);
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

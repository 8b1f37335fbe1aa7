#include "experiments/data/training_order.hpp"

#include "core/error.hpp"
#include "experiments/data/shuffle.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <map>
#include <set>

using namespace moelab;

namespace {

std::vector<std::int64_t> entries(std::int64_t size, const random::Stream& stream) {
  const Shuffle shuffle(size, stream);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(shuffle(i));
  return values;
}

}  // namespace

TEST_CASE("A shuffle takes every value once") {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 1024, 65537}) {
    CAPTURE(size);
    const std::vector<std::int64_t> values = entries(size, random::Stream(7, "test"));
    const std::set<std::int64_t> distinct(values.begin(), values.end());
    CHECK(static_cast<std::int64_t>(distinct.size()) == size);
    CHECK(*distinct.begin() == 0);
    CHECK(*distinct.rbegin() == size - 1);
  }
  // Too long to be listed: in range, and distinct as far as one looks.
  const std::int64_t large = (std::int64_t{1} << 62) - 3;
  const Shuffle shuffle(large, random::Stream(7, "test"));
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t value = shuffle(i);
    CHECK((value >= 0 && value < large));
    seen.insert(value);
  }
  CHECK(seen.size() == 1000);
  CHECK_THROWS_AS(Shuffle(0, random::Stream(7, "test")), Error);
}

TEST_CASE("Shuffles of different streams look independent and uniform") {
  CHECK(entries(100, random::Stream(1, "a")) != entries(100, random::Stream(2, "a")));
  CHECK(entries(100, random::Stream(1, "a")) != entries(100, random::Stream(1, "b")));
  CHECK(entries(100, random::Stream(1, "a", 0)) != entries(100, random::Stream(1, "a", 1)));

  // All 6 orders of 3 values over 6000 streams: chi-square with 5 degrees of freedom stays below 20.5 (p =
  // 0.001).
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++counts[entries(3, random::Stream(seed, "uniform"))];
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += std::pow(count - 1000.0, 2) / 1000.0;
  CHECK(counts.size() == 6);
  CHECK(chi_square < 20.5);

  // Rank correlation of a long shuffle with the identity: about N(0, 1/n).
  const std::int64_t size = 10000;
  const std::vector<std::int64_t> values = entries(size, random::Stream(3, "correlation"));
  const double mean = (size - 1) / 2.0;
  double covariance = 0;
  double variance = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    covariance += (static_cast<double>(i) - mean) * (static_cast<double>(values[i]) - mean);
    variance += std::pow(static_cast<double>(i) - mean, 2);
  }
  CHECK(std::abs(covariance / variance) < 4 / std::sqrt(static_cast<double>(size)));
}

TEST_CASE("Every epoch of a domain goes through each window once") {
  const TrainingOrder order({1.0, 3.0}, {10, 700});
  std::map<std::pair<Index, std::int64_t>, std::multiset<std::int64_t>> windows;  // by domain and epoch
  for (std::int64_t i = 0; i < 4 * TrainingOrder::kBlock; ++i) {
    const TrainingOrder::Place place = order.at(5, i);
    windows[{place.domain, place.epoch}].insert(place.window);
  }
  const std::int64_t counts[2] = {1024, 3072};
  const std::int64_t sizes[2] = {10, 700};
  for (Index d = 0; d < 2; ++d) {
    for (std::int64_t epoch = 0; epoch <= (counts[d] - 1) / sizes[d]; ++epoch) {
      const auto& seen = windows[{d, epoch}];
      const std::int64_t expected = std::min(sizes[d], counts[d] - epoch * sizes[d]);
      CHECK(static_cast<std::int64_t>(seen.size()) == expected);
      const std::set<std::int64_t> distinct(seen.begin(), seen.end());
      CHECK(static_cast<std::int64_t>(distinct.size()) == expected);
      CHECK((*seen.begin() >= 0 && *seen.rbegin() < sizes[d]));
    }
  }
}

TEST_CASE("Domains get their shares in every block, in an order that depends on the seed") {
  const TrainingOrder order({1.0, 1.0, 2.0}, {100, 100, 100});
  CHECK(order.quotas() == std::vector<Index>{256, 256, 512});
  std::vector<Index> counts(3);
  int same = 0;
  for (std::int64_t i = 0; i < TrainingOrder::kBlock; ++i) {
    ++counts[order.at(1, i).domain];
    same += order.at(1, i).domain == order.at(2, i).domain;
  }
  CHECK(counts == order.quotas());
  // By chance 1/16 + 1/16 + 1/4 of the places agree.
  CHECK(same > 300);
  CHECK(same < 470);
  // A thousandth part and less still gets one sequence; the sum is kept.
  CHECK(TrainingOrder({1e-9, 1.0}, {1, 1}).quotas() == std::vector<Index>{1, 1023});
  CHECK(TrainingOrder({1.0, 1.0, 1.0}, {1, 1, 1}).quotas() == std::vector<Index>{342, 341, 341});
}

TEST_CASE("A training order refuses what it cannot do") {
  CHECK_THROWS_AS(TrainingOrder({}, {}), Error);
  CHECK_THROWS_AS(TrainingOrder({1.0}, {0}), Error);
  CHECK_THROWS_AS(TrainingOrder({0.0}, {1}), Error);
  CHECK_THROWS_AS(TrainingOrder({std::nan("")}, {1}), Error);
  CHECK_THROWS_AS(TrainingOrder({1.0, 1.0}, {1}), Error);
  CHECK_THROWS_AS(TrainingOrder({1.0}, {1}).at(0, -1), Error);
}

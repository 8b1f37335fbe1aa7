#include "moe/capacity.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

#include <numeric>

using namespace moelab;
using namespace moelab::moe;

namespace {

using Kept = std::vector<std::uint8_t>;

Matrix column(std::initializer_list<double> values) {
  Matrix m(static_cast<Index>(values.size()), 1);
  Index i = 0;
  for (const double v : values) m(i++, 0) = static_cast<Scalar>(v);
  return m;
}

Kept drop(const std::string& order, const Choices& choices, const Matrix& weights,
          std::vector<Scalar> priority, Index capacity) {
  return drop_choices(order, choices, weights, priority, 4, capacity, random::Stream(3, "drop"));
}

}  // namespace

TEST_CASE("capacity is exact on the decimal as written", "[moe][capacity]") {
  CHECK(expert_capacity(1.1, 1, 100, 10, 1) == 11);  // ceil(100 * 1.1 / 10) in doubles is 12
  CHECK(expert_capacity(1.0, 1, 5, 4, 0) == 2);
  CHECK(expert_capacity(1.25, 2, 2048, 8, 4) == 640);
  CHECK(expert_capacity(0.7, 3, 10, 3, 1) == 7);  // 0.7 * 30 / 3 in doubles is below 7
  CHECK(expert_capacity(1.2, 1, 1000000, 12, 1) == 100000);
  CHECK(expert_capacity(1e-6, 1, 1000000, 1, 0) == 1);
  CHECK(expert_capacity(100, 1, 7, 7, 0) == 7);
  CHECK(expert_capacity(1e6, 64, 1 << 20, 1, 0) == 1 << 20);
}

TEST_CASE("capacity lies between the minimum and the number of tokens", "[moe][capacity]") {
  CHECK(expert_capacity(0.5, 1, 12, 6, 4) == 4);
  CHECK(expert_capacity(4.0, 1, 4, 2, 1) == 4);
  CHECK(expert_capacity(1.0, 1, 3, 2, 8) == 3);
  CHECK(expert_capacity(1.0, 1, 0, 2, 8) == 0);
}

TEST_CASE("by position, all first choices come before any second choice", "[moe][capacity]") {
  // Expert 0 is wanted second by tokens 0 and 1, first by tokens 2 and 3.
  const Choices choices{{0, 2, 4, 6, 8}, {1, 0, 2, 0, 0, 3, 0, 1}};
  const Matrix w = Matrix::Ones(8, 1);
  CHECK(drop("position", choices, w, {}, 2) == Kept{1, 0, 1, 0, 1, 1, 1, 1});
  CHECK(drop("position", choices, w, {}, 3) == Kept{1, 1, 1, 0, 1, 1, 1, 1});
}

TEST_CASE("five tokens for one expert of capacity two keep tokens 0 and 1", "[moe][capacity]") {
  const Choices choices{{0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0}};
  CHECK(drop("position", choices, Matrix::Ones(5, 1), {}, 2) == Kept{1, 1, 0, 0, 0});
}

TEST_CASE("by probability, an expert keeps its largest weights, ties to the lowest token",
          "[moe][capacity]") {
  const Choices choices{{0, 1, 2, 3, 4}, {0, 0, 0, 0}};
  CHECK(drop("probability", choices, column({0.2, 0.9, 0.5, 0.5}), {}, 2) == Kept{0, 1, 1, 0});
}

TEST_CASE("by batch priority, the most certain tokens come first", "[moe][capacity]") {
  const Choices choices{{0, 1, 2, 3, 4}, {0, 0, 0, 0}};
  CHECK(drop("batch_priority", choices, Matrix::Ones(4, 1), {0.3F, 0.5F, 0.9F, 0.5F}, 2) == Kept{0, 1, 1, 0});
}

TEST_CASE("at random, every expert is filled, and the seed decides", "[moe][capacity]") {
  Choices choices;
  choices.offsets.push_back(0);
  for (int t = 0; t < 40; ++t) {
    choices.expert_of.push_back(0);
    choices.offsets.push_back(t + 1);
  }
  const Matrix w = Matrix::Ones(40, 1);
  const auto keep = [&](std::uint64_t seed) {
    return drop_choices("random", choices, w, {}, 1, 10, random::Stream(seed, "drop"));
  };
  const Kept first = keep(1);
  CHECK(std::accumulate(first.begin(), first.end(), 0) == 10);
  CHECK(keep(1) == first);
  CHECK(keep(2) != first);
  CHECK(first != drop("position", choices, w, {}, 10));
}

TEST_CASE("an unknown drop order is an error", "[moe][capacity]") {
  CHECK_THROWS_AS(drop("last", {{0, 1}, {0}}, Matrix::Ones(1, 1), {}, 1), Error);
}

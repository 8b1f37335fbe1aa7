#include "core/ops/loss.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

namespace {
using Ids = std::vector<std::int32_t>;
using Marks = std::vector<std::uint8_t>;
}  // namespace

TEST_CASE("cross-entropy is the mean over the targets that count", "[ops]") {
  const Matrix logits = Matrix{{1.0, 2.0, 0.5}, {0.0, 0.0, 0.0}, {1000.0, 0.0, 0.0}, {0.0, 1000.0, 0.0}};
  const ops::TaskLoss loss = ops::cross_entropy(Variable(logits), Ids{1, -1, 0, 0}, -1);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(0.5)) - 2;
  CHECK(loss.num_counted == 3);
  CHECK_THAT(loss.rows[0], WithinAbs(first, 1e-14));
  CHECK(std::isnan(loss.rows[1]));
  CHECK(loss.rows[2] == 0);
  CHECK(loss.rows[3] == 1000);
  CHECK_THAT(loss.mean.item(), WithinAbs((first + 1000) / 3, 1e-12));
}

TEST_CASE("cross-entropy has the right gradient, zero where nothing counts", "[ops][gradient]") {
  const Ids targets{0, 4, -7, 2, 2};
  const auto f = [&](const std::vector<Variable>& x) { return ops::cross_entropy(x[0], targets, -7).mean; };
  CHECK(gradient_mismatch(f, {random_matrix(5, 6, 1)}) == "");

  const Variable x(random_matrix(2, 6, 2), true);
  const ops::TaskLoss none = ops::cross_entropy(x, Ids{-7, -7}, -7);
  CHECK(none.mean.item() == 0);
  CHECK(none.num_counted == 0);
  backward(none.mean);
  CHECK(x.grad() == Matrix::Zero(2, 6));
}

TEST_CASE("a NaN among the logits reaches the loss", "[ops]") {
  Matrix logits = Matrix::Zero(2, 40);
  logits(1, 35) = NAN;
  CHECK(std::isnan(ops::cross_entropy(Variable(logits), Ids{0, 0}, -1).mean.item()));
}

TEST_CASE("a target outside the vocabulary is an error", "[ops]") {
  const Variable logits(Matrix::Zero(2, 3));
  CHECK_THROWS_WITH(ops::cross_entropy(logits, Ids{0, 3}, -1), Contains("target 3 is not in [0, 3)"));
  CHECK_THROWS_WITH(ops::cross_entropy(logits, Ids{0, -2}, -1), Contains("target -2"));
  CHECK_THROWS_WITH(ops::cross_entropy(logits, Ids{0}, -1), Contains("1 targets for 2 rows"));
}

TEST_CASE("the squared error is a mean over columns and real rows", "[ops][gradient]") {
  const Matrix prediction = Matrix{{1.0, 2.0}, {5.0, 5.0}, {0.0, 0.0}},
               target = Matrix{{0.0, 0.0}, {0.0, 0.0}, {3.0, 1.0}};
  const ops::TaskLoss loss = ops::squared_error(Variable(prediction), target, Marks{1, 0, 1});
  CHECK(loss.num_counted == 2);
  CHECK(loss.rows[0] == 2.5);
  CHECK(std::isnan(loss.rows[1]));
  CHECK(loss.rows[2] == 5);
  CHECK(loss.mean.item() == 3.75);
  for (const Marks& marks : {Marks{}, Marks{1, 0, 1}, Marks{0, 0, 0}}) {
    const auto f = [&](const std::vector<Variable>& x) {
      return ops::squared_error(x[0], target, marks).mean;
    };
    CHECK(gradient_mismatch(f, {prediction}) == "");
  }
}

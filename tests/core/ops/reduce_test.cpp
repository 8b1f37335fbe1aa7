#include "core/ops/reduce.hpp"

#include "core/ops/normalise.hpp"
#include "core/ops/softmax.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>
#include <limits>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

TEST_CASE("sums and means add what they say", "[ops]") {
  const Variable x(Matrix{{1.0, 2.0, 3.0}, {10.0, 20.0, 60.0}});
  CHECK(ops::sum(x).item() == 96);
  CHECK(ops::mean(x).item() == 16);
  CHECK(ops::row_sum(x).value() == Matrix{{6.0}, {90.0}});
  CHECK(ops::column_sum(x).value() == Matrix{{11.0, 22.0, 63.0}});
  CHECK(ops::column_mean(x).value() == Matrix{{5.5, 11.0, 31.5}});
  CHECK(ops::weighted_sum({ops::sum(x), ops::mean(x)}, {0.5, 2}).item() == 80);
  CHECK(ops::weighted_sum({}, {}).item() == 0);
}

TEST_CASE("a mean over nothing is an error", "[ops]") {
  const Variable empty{Matrix(0, 3)};
  CHECK(ops::sum(empty).item() == 0);
  CHECK_THROWS_WITH(ops::mean(empty), Contains("(0, 3)"));
  CHECK_THROWS_WITH(ops::column_mean(empty), Contains("(0, 3)"));
}

TEST_CASE("reductions have the right gradients", "[ops][gradient]") {
  for (const auto op : {ops::sum, ops::mean, ops::row_sum, ops::column_sum, ops::column_mean,
                        ops::row_softmax, ops::row_log_sum_exp, ops::row_normalise}) {
    CHECK(gradient_mismatch([op](const std::vector<Variable>& x) { return op(x[0]); },
                            {random_matrix(4, 3, 1)}) == "");
  }
  const auto shares = [](const std::vector<Variable>& x) { return ops::row_normalise_sum(x[0], 0.01); };
  CHECK(gradient_mismatch(shares, {random_matrix(4, 3, 1).cwiseAbs()}) == "");
  const auto weighted = [](const std::vector<Variable>& x) {
    return ops::weighted_sum({x[0], x[1]}, {0.5, -2});
  };
  CHECK(gradient_mismatch(weighted, {random_matrix(1, 1, 1), random_matrix(1, 1, 2)}) == "");
}

TEST_CASE("softmax and log-sum-exp do not overflow", "[ops]") {
  const double inf = std::numeric_limits<double>::infinity();
  const Variable x(Matrix{{1000.0, 0.0}, {-1000.0, -1000.0}, {-inf, 3.0}});
  CHECK(ops::row_softmax(x).value() == Matrix{{1.0, 0.0}, {0.5, 0.5}, {0.0, 1.0}});
  const Matrix lse = ops::row_log_sum_exp(x).value();
  CHECK(lse(0, 0) == 1000);
  CHECK_THAT(lse(1, 0), WithinAbs(-1000 + std::log(2.0), 1e-12));
  CHECK(lse(2, 0) == 3);
}

TEST_CASE("softmax of many rows has the right gradients, and a row with a NaN is NaN", "[ops][gradient]") {
  // More rows than a task has, more columns than a vector.
  CHECK(gradient_mismatch([](const std::vector<Variable>& x) { return ops::row_softmax(x[0]); },
                          {random_matrix(70, 40, 2)}) == "");
  Matrix x = random_matrix(70, 40, 3);
  x(66, 37) = std::numeric_limits<double>::quiet_NaN();
  const Matrix y = ops::row_softmax(Variable(x)).value();
  CHECK(y.row(66).array().isNaN().all());
  CHECK(y.topRows(66).allFinite());
  CHECK(std::isnan(ops::row_log_sum_exp(Variable(x)).value()(66, 0)));
}

TEST_CASE("an entry of minus infinity gets no gradient", "[ops]") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto op : {ops::row_softmax, ops::row_log_sum_exp}) {
    const Variable x(Matrix{{1.0, -inf, 2.0}}, true);
    const Variable y = op(x);
    backward(y, Matrix::Ones(y.rows(), y.cols()) + random_matrix(y.rows(), y.cols(), 1));
    CHECK(x.grad()(0, 1) == 0);
    CHECK(std::isfinite(x.grad()(0, 0)));
  }
}

TEST_CASE("normalised rows have length or sum one; zeros stay zeros", "[ops]") {
  const Variable x(Matrix{{3.0, 4.0}, {0.0, 0.0}}, true);
  const Variable y = ops::row_normalise(x);
  CHECK((y.value() - Matrix{{0.6, 0.8}, {0.0, 0.0}}).cwiseAbs().maxCoeff() < 1e-15);
  backward(y, Matrix::Ones(2, 2));
  CHECK(x.grad().row(1) == Matrix::Zero(1, 2));
  const Variable shares = ops::row_normalise_sum(Variable(Matrix{{1.0, 3.0}, {0.0, 0.0}}), 1e-20);
  CHECK(shares.value() == Matrix{{0.25, 0.75}, {0.0, 0.0}});
}

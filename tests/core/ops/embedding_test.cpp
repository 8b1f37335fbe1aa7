#include "core/ops/embedding.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

TEST_CASE("an embedding reads rows, and tokens that share a row add up their gradients", "[ops][gradient]") {
  const std::vector<std::int32_t> ids{2, 0, 2, 1};
  const Matrix table = random_matrix(4, 3, 1);
  const Matrix y = ops::embedding(Variable(table), ids).value();
  for (Index n = 0; n < 4; ++n) CHECK(y.row(n) == table.row(ids[static_cast<std::size_t>(n)]));
  const auto f = [&](const std::vector<Variable>& x) { return ops::embedding(x[0], ids); };
  CHECK(gradient_mismatch(f, {table}) == "");
  CHECK_THROWS_WITH(ops::embedding(Variable(table), std::vector<std::int32_t>{0, 4}),
                    Contains("id 4 is not in [0, 4)"));
  CHECK_THROWS_WITH(ops::embedding(Variable(table), std::vector<std::int32_t>{-1}), Contains("id -1"));
}

TEST_CASE("positions repeat in every sequence", "[ops][gradient]") {
  const Matrix x = random_matrix(6, 2, 1), table = random_matrix(4, 2, 2);
  const Matrix y = ops::add_positions(Variable(x), Variable(table), 3).value();
  for (Index n = 0; n < 6; ++n) CHECK(y.row(n) == x.row(n) + table.row(n % 3));
  const auto f = [](const std::vector<Variable>& v) { return ops::add_positions(v[0], v[1], 3); };
  CHECK(gradient_mismatch(f, {x, table}) == "");
  CHECK_THROWS_WITH(ops::add_positions(Variable(x), Variable(table), 4), Contains("6 rows"));
  CHECK_THROWS_WITH(ops::add_positions(Variable(x), Variable(table), 6),
                    Contains("table (4, 2) for 6 positions"));
}

TEST_CASE("sinusoids have wavelengths from 2 pi on", "[ops]") {
  const Matrix table = ops::sinusoidal_positions(8, 6);
  CHECK(table.row(0) == Matrix{{0.0, 1.0, 0.0, 1.0, 0.0, 1.0}});
  CHECK_THAT(table(5, 0), WithinAbs(std::sin(5.0), 1e-14));
  CHECK_THAT(table(5, 1), WithinAbs(std::cos(5.0), 1e-14));
  CHECK_THAT(table(7, 4), WithinAbs(std::sin(7.0 / std::pow(10000.0, 4.0 / 6.0)), 1e-14));
  CHECK_THAT(table(7, 5), WithinAbs(std::cos(7.0 / std::pow(10000.0, 4.0 / 6.0)), 1e-14));
}

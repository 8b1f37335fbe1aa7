#include "core/ops/gather.hpp"

#include "core/ops/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

TEST_CASE("gathering reads, and scattering adds up, the entries of the lists", "[ops]") {
  const Variable x(Matrix{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  CHECK(ops::gather_entries(x, {2, 0, 2}, {1, 0, 1}).value() == Matrix{{6.0}, {1.0}, {6.0}});
  CHECK(ops::gather_rows(x, {2, 2, 0}).value() == Matrix{{5.0, 6.0}, {5.0, 6.0}, {1.0, 2.0}});
  const Variable v(Matrix{{1.0}, {2.0}, {4.0}});
  CHECK(ops::scatter_entries(v, {1, 0, 1}, {2, 0, 2}, 2, 3).value() ==
        Matrix{{2.0, 0.0, 0.0}, {0.0, 0.0, 5.0}});
  CHECK(ops::scatter_rows(x, {1, 0, 1}, 3).value() == Matrix{{3.0, 4.0}, {6.0, 8.0}, {0.0, 0.0}});
  CHECK(ops::gather_rows(x, {}).rows() == 0);
  CHECK_THROWS_WITH(ops::gather_rows(x, {0, 3}), Contains("row 3 is not in [0, 3)"));
  CHECK_THROWS_WITH(ops::gather_entries(x, {0}, {-1}), Contains("column -1 is not in [0, 2)"));
  CHECK_THROWS_WITH(ops::scatter_entries(v, {0}, {0}, 1, 1), Contains("(3, 1) for 1 entries"));
}

TEST_CASE("cutting apart and putting together are inverse", "[ops]") {
  const Variable x(random_matrix(5, 4, 1));
  CHECK(ops::concat_rows({ops::slice_rows(x, 0, 2), ops::slice_rows(x, 2, 0), ops::slice_rows(x, 2, 3)})
            .value() == x.value());
  CHECK(ops::concat_columns({ops::slice_columns(x, 0, 3), ops::slice_columns(x, 3, 1)}).value() == x.value());
  CHECK(ops::transpose(ops::transpose(x)).value() == x.value());
  CHECK_THROWS_WITH(ops::slice_rows(x, 3, 3), Contains("3 rows from 3 of (5, 4)"));
  CHECK_THROWS_WITH(ops::concat_rows({}), Contains("no parts"));
}

TEST_CASE("indexing and cutting have the right gradients", "[ops][gradient]") {
  using Inputs = std::vector<Variable>;
  const Matrix x = random_matrix(3, 4, 1);
  CHECK(gradient_mismatch(
            [](const Inputs& v) {
              return ops::gather_entries(v[0], {2, 0, 2}, {1, 3, 1});
            },
            {x}) == "");
  CHECK(gradient_mismatch([](const Inputs& v) { return ops::gather_rows(v[0], {2, 2, 0}); }, {x}) == "");
  CHECK(gradient_mismatch(
            [](const Inputs& v) {
              return ops::scatter_entries(v[0], {1, 0, 1}, {2, 0, 2}, 2, 3);
            },
            {random_matrix(3, 1, 2)}) == "");
  CHECK(gradient_mismatch([](const Inputs& v) { return ops::scatter_rows(v[0], {1, 0, 1}, 3); }, {x}) == "");
  CHECK(gradient_mismatch([](const Inputs& v) { return ops::slice_rows(v[0], 1, 2); }, {x}) == "");
  CHECK(gradient_mismatch([](const Inputs& v) { return ops::slice_columns(v[0], 1, 2); }, {x}) == "");
  CHECK(gradient_mismatch(
            [](const Inputs& v) {
              return ops::concat_rows({v[0], v[1], v[0]});
            },
            {x, random_matrix(1, 4, 2)}) == "");
  CHECK(gradient_mismatch(
            [](const Inputs& v) {
              return ops::concat_columns({v[0], v[1]});
            },
            {x, random_matrix(3, 2, 2)}) == "");
  CHECK(gradient_mismatch([](const Inputs& v) { return ops::transpose(v[0]); }, {x}) == "");
}

#include "core/ops/matmul.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

TEST_CASE("matrix products agree with a product written out", "[ops]") {
  const Variable a(Matrix{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  const Variable b(Matrix{{10.0, 1.0}, {0.0, 2.0}});
  CHECK(ops::matmul(a, b).value() == Matrix{{10.0, 5.0}, {30.0, 11.0}, {50.0, 17.0}});
  CHECK(ops::matmul_transposed(a, b).value() == Matrix{{12.0, 4.0}, {34.0, 8.0}, {56.0, 12.0}});
  CHECK_THROWS_WITH(ops::matmul(a, a), Contains("(3, 2) times (3, 2)"));
}

TEST_CASE("matrix products have the right gradients", "[ops][gradient]") {
  const auto plain = [](const std::vector<Variable>& x) { return ops::matmul(x[0], x[1]); };
  const auto transposed = [](const std::vector<Variable>& x) { return ops::matmul_transposed(x[0], x[1]); };
  CHECK(gradient_mismatch(plain, {random_matrix(3, 4, 1), random_matrix(4, 2, 2)}) == "");
  CHECK(gradient_mismatch(transposed, {random_matrix(3, 4, 1), random_matrix(2, 4, 2)}) == "");
}

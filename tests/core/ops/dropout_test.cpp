#include "core/ops/dropout.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>

using namespace moelab;

TEST_CASE("dropout drops its share, scales the rest and uses the same mask backward", "[ops]") {
  const double rate = 0.3;
  const Index n = 100000;
  const random::Stream stream(1, "dropout", 5);
  const Variable x(Matrix::Ones(n / 100, 100), true);
  const Variable y = ops::dropout(x, rate, stream);
  const Scalar kept = static_cast<Scalar>(1 / (1 - rate));
  Index dropped = 0;
  for (Index i = 0; i < n; ++i) {
    const Scalar v = y.value().data()[i];
    REQUIRE((v == 0 || v == kept));
    dropped += v == 0;
  }
  CHECK(std::abs(double(dropped) / n - rate) < 5 * std::sqrt(rate * (1 - rate) / n));
  backward(y, Matrix::Ones(n / 100, 100));
  CHECK(x.grad() == y.value());  // of ones: the mask itself

  CHECK(ops::dropout(x, rate, stream).value() == y.value());
  CHECK_FALSE(ops::dropout(x, rate, random::Stream(1, "dropout", 6)).value() == y.value());
}

TEST_CASE("a rate of 0 changes nothing; a rate of 1 is an error", "[ops]") {
  const Variable x(test::random_matrix(3, 4, 1));
  const random::Stream stream(1, "dropout");
  CHECK(ops::dropout(x, 0, stream).value() == x.value());
  CHECK_THROWS_WITH(ops::dropout(x, 1, stream), Contains("rate=1"));
  CHECK_THROWS_WITH(ops::dropout(x, -0.1, stream), Contains("rate=-0.1"));
}

#include "core/ops/dropout.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>

#include <Random123/philox.h>

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

TEST_CASE("dropout follows Philox, keyed by the first draw of its stream", "[ops]") {
  const random::Stream stream(1, "dropout", 9);
  const std::uint64_t key = stream.bits(0);
  const ops::DropoutMask mask(0.25, stream);
  std::vector<Scalar> factors(400);
  const std::uint64_t first = 4 * 0xffffffd0ULL;  // draws that carry into the high half of the counter
  mask.factors(first, 400, factors.data());
  for (std::size_t i = 0; i < 400; ++i) {
    const std::uint64_t draw = (first + i) / 4;
    const auto words = r123::Philox4x32{}({{std::uint32_t(draw), std::uint32_t(draw >> 32), 0, 0}},
                                          {{std::uint32_t(key), std::uint32_t(key >> 32)}});
    REQUIRE((factors[i] == 0) == (words[i % 4] < 0x40000000U));
  }
}

TEST_CASE("the factor of an entry does not depend on where a block begins", "[ops]") {
  const ops::DropoutMask mask(0.5, random::Stream(1, "dropout"));
  std::vector<Scalar> all(1000);
  mask.factors(3, 1000, all.data());
  for (const Index begin : {0, 1, 2, 250, 997}) {
    std::vector<Scalar> part(static_cast<std::size_t>(1000 - begin));
    mask.factors(static_cast<std::uint64_t>(3 + begin), 1000 - begin, part.data());
    CHECK(std::equal(part.begin(), part.end(), all.begin() + begin));
  }
}

TEST_CASE("a rate of 0 changes nothing; a rate of 1 is an error", "[ops]") {
  const Variable x(test::random_matrix(3, 4, 1));
  const random::Stream stream(1, "dropout");
  CHECK(ops::dropout(x, 0, stream).value() == x.value());
  CHECK_THROWS_WITH(ops::dropout(x, 1, stream), Contains("rate=1"));
  CHECK_THROWS_WITH(ops::dropout(x, -0.1, stream), Contains("rate=-0.1"));
}

#include "core/gemm.hpp"

#include "core/error.hpp"
#include "core/gemm_serial.hpp"
#include "core/module.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using namespace moelab;
using gemm::Precision;

namespace {

struct Shape {
  Index m, n, k;
};
// Rows: none, one, odd, around the block sizes. Columns that fill no vector.
constexpr Shape kShapes[] = {{0, 8, 5},    {1, 1, 1},     {1, 7, 33},     {3, 5, 2},      {17, 8, 64},
                             {65, 96, 31}, {128, 64, 64}, {200, 130, 70}, {515, 256, 96}, {1100, 40, 72}};

Matrix random_matrix(Index rows, Index cols, std::string_view name) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(3, name), 1);
  return m;
}

float value_of(Bfloat16 half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16); }

// The values that a product in this precision sees.
Eigen::MatrixXd seen(const Matrix& m, Precision precision) {
  if (!gemm::uses_bfloat16(precision)) return m.cast<double>();
  std::vector<Bfloat16> rounded(static_cast<std::size_t>(m.size()));
  to_bfloat16(m.data(), rounded.data(), m.size());
  Eigen::MatrixXd values(m.rows(), m.cols());
  for (Index i = 0; i < m.rows(); ++i) {
    for (Index j = 0; j < m.cols(); ++j) {
      values(i, j) = value_of(rounded[static_cast<std::size_t>(i * m.cols() + j)]);
    }
  }
  return values;
}

// y = x w^T by three loops in float64.
Eigen::MatrixXd naive_forward(const Matrix& x, const Matrix& w, Precision precision) {
  const Eigen::MatrixXd left = seen(x, precision).transpose();
  const Eigen::MatrixXd right = seen(w, precision).transpose();
  Eigen::MatrixXd y = Eigen::MatrixXd::Zero(x.rows(), w.rows());
  for (Index t = 0; t < x.rows(); ++t) {
    for (Index o = 0; o < w.rows(); ++o) {
      for (Index i = 0; i < x.cols(); ++i) y(t, o) += left(i, t) * right(i, o);
    }
  }
  return y;
}

// Sums of K products of unit normals in float32, added in any order. Operands rounded to bfloat16 have exact
// products, so the same bound holds for them; a product of other operands would be off by 2^-9 sqrt(K).
double tolerance(Index summands) { return 3e-7 * static_cast<double>(summands) + 1e-6; }

double max_difference(const Matrix& a, const Eigen::MatrixXd& b) {
  REQUIRE(a.rows() == b.rows());
  REQUIRE(a.cols() == b.cols());
  return a.size() == 0 ? 0 : (a.cast<double>() - b).cwiseAbs().maxCoeff();
}

bool same_bits(const Matrix& a, const Matrix& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(Scalar)) == 0;
}

// Two weights in one store, which products may stack.
struct Weights : Module {
  Weights(Index out, Index in) : first(out, in, Init::normal(1)), second(out, in, Init::normal(1)) {}
  Parameter first, second;
  void visit(Visitor& v) override {
    v.parameter("first", first);
    v.parameter("second", second);
  }
};

struct DefaultThreads {
  ~DefaultThreads() { parallel::set_threads(0); }
};

}  // namespace

TEST_CASE("the three products equal loops over their definition", "[gemm]") {
  const Precision precision = GENERATE(Precision::float32, Precision::bfloat16);
  const bool accumulate = GENERATE(false, true);
  for (const auto& [m, n, k] : kShapes) {
    CAPTURE(m, n, k, accumulate, gemm::backend(precision));
    const Matrix x = random_matrix(m, k, "x");
    const Matrix w = random_matrix(n, k, "w");
    const Matrix dy = random_matrix(m, n, "dy");
    const Scalar before = accumulate ? 3 : std::numeric_limits<Scalar>::quiet_NaN();
    const double added = accumulate ? 3 : 0;

    Matrix y = Matrix::Constant(m, n, before);
    gemm::forward(x, w, y, precision, accumulate);
    CHECK(max_difference(y, naive_forward(x, w, precision).array() + added) < tolerance(k));

    Matrix dx = Matrix::Constant(m, k, before);
    gemm::backward_input(dy, w, dx, precision, accumulate);
    CHECK(max_difference(dx, naive_forward(dy, w.transpose(), precision).array() + added) < tolerance(n));

    Matrix dw = Matrix::Constant(n, k, before);
    gemm::backward_weight(dy, x, dw, precision, accumulate);
    CHECK(max_difference(dw, naive_forward(dy.transpose(), x.transpose(), precision).array() + added) <
          tolerance(m));
  }
}

TEST_CASE("packed weights give the product of the plain ones, for every number of rows", "[gemm]") {
  const Precision precision = GENERATE(Precision::float32, Precision::bfloat16);
  for (const auto& [n, k] : {std::pair<Index, Index>{96, 64}, {7, 33}, {130, 70}, {1, 16}}) {
    Weights weights(n, k);
    ParameterStore store(weights, 5);
    const gemm::PackedWeight stacked({&weights.first, &weights.second});
    Matrix both(2 * n, k);
    both << weights.first.value(), weights.second.value();
    for (const Index m : {1, 2, 15, 16, 17, 64, 100, 128, 300}) {
      CAPTURE(m, n, k, gemm::backend(precision));
      const Matrix x = random_matrix(m, k, "x");
      const Matrix dy = random_matrix(m, 2 * n, "dy");
      Matrix y(m, 2 * n);
      gemm::forward(x, stacked, y, precision);
      CHECK(max_difference(y, naive_forward(x, both, precision)) < tolerance(k));
      Matrix dx(m, k);
      gemm::backward_input(dy, stacked, dx, precision);
      CHECK(max_difference(dx, naive_forward(dy, both.transpose(), precision)) < tolerance(2 * n));
    }
  }
}

TEST_CASE("weights as they lie give the product of packed ones, and follow their parameters", "[gemm]") {
  const Precision precision = GENERATE(Precision::float32, Precision::bfloat16);
  const bool half = gemm::uses_bfloat16(precision);
  for (const auto& [n, k] : {std::pair<Index, Index>{96, 64}, {7, 33}, {1, 16}}) {
    Weights weights(n, k);
    ParameterStore store(weights, 5);
    const gemm::PackedWeight stacked({&weights.first, &weights.second});
    for (const Index m : {1, 16, 100}) {
      CAPTURE(m, n, k, gemm::backend(precision));
      weights.second.value() *= -1;
      weights.second.mark_changed();
      Matrix both(2 * n, k);
      both << weights.first.value(), weights.second.value();
      const Matrix x = random_matrix(m, k, "x");
      const Matrix dy = random_matrix(m, 2 * n, "dy");
      std::vector<Bfloat16> x_half(static_cast<std::size_t>(x.size()));
      std::vector<Bfloat16> dy_half(static_cast<std::size_t>(dy.size()));
      to_bfloat16(x.data(), x_half.data(), x.size());
      to_bfloat16(dy.data(), dy_half.data(), dy.size());
      Matrix y(m, 2 * n);
      const std::uint64_t before = gemm::multiply_adds();
      gemm::serial::forward_plain(half ? gemm::Operand(x_half.data(), m, k, k) : gemm::Operand(x), stacked,
                                  y);
      CHECK(gemm::multiply_adds() - before == static_cast<std::uint64_t>(m * 2 * n * k));
      CHECK(max_difference(y, naive_forward(x, both, precision)) < tolerance(k));
      Matrix dx(m, k);
      gemm::serial::backward_input_plain(
          half ? gemm::Operand(dy_half.data(), m, 2 * n, 2 * n) : gemm::Operand(dy), stacked, dx);
      CHECK(max_difference(dx, naive_forward(dy, both.transpose(), precision)) < tolerance(2 * n));
    }
  }
}

TEST_CASE("a packed weight follows its parameters", "[gemm]") {
  Weights weights(8, 16);
  ParameterStore store(weights, 5);
  const gemm::PackedWeight stacked({&weights.first, &weights.second});
  const Matrix x = random_matrix(4, 16, "x");
  Matrix y(4, 16);
  gemm::forward(x, stacked, y, Precision::float32);
  weights.second.value().setZero();
  weights.second.mark_changed();
  Matrix changed(4, 16);
  gemm::forward(x, stacked, changed, Precision::float32);
  CHECK(changed.leftCols(8) == y.leftCols(8));
  CHECK(changed.rightCols(8).isZero(0));
}

TEST_CASE("many threads may use a weight before it is packed", "[gemm]") {
  const DefaultThreads restore;
  parallel::set_threads(8);
  for (int repeat = 0; repeat < 20; ++repeat) {
    Weights weights(32, 48);
    ParameterStore store(weights, 5);
    const Matrix x = random_matrix(16, 48, "x");
    const Eigen::MatrixXd expected = naive_forward(x, weights.first.value(), Precision::float32);
    std::array<double, 32> differences{};
    parallel::for_each(32, [&](Index i) {
      Matrix y(16, 32);
      gemm::serial::forward(gemm::Operand(x), weights.first.packed(), y);
      differences[static_cast<std::size_t>(i)] = (y.cast<double>() - expected).cwiseAbs().maxCoeff();
    });
    for (const double difference : differences) CHECK(difference < tolerance(48));
  }
}

TEST_CASE("products have the same bits at every thread count", "[gemm]") {
  const DefaultThreads restore;
  const Precision precision = GENERATE(Precision::float32, Precision::bfloat16);
  const Matrix x = random_matrix(1100, 96, "x");
  const Matrix w = random_matrix(320, 96, "w");
  const Matrix dy = random_matrix(1100, 320, "dy");
  std::vector<std::array<Matrix, 3>> results;
  for (const int threads : {1, 2, 3, 8}) {
    parallel::set_threads(threads);
    Matrix y(1100, 320);
    Matrix dx(1100, 96);
    Matrix dw(320, 96);
    gemm::forward(x, w, y, precision);
    gemm::backward_input(dy, w, dx, precision);
    gemm::backward_weight(dy, x, dw, precision);
    results.push_back({y, dx, dw});
    for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(results.back()[i], results.front()[i]));
  }
}

TEST_CASE("serial products work on blocks of larger matrices", "[gemm]") {
  const Precision precision = GENERATE(Precision::float32, Precision::bfloat16);
  constexpr Index m = 48, n = 24, k = 40, wide = 70;
  Weights weights(n, k);
  ParameterStore store(weights, 5);
  const Matrix x = random_matrix(m, wide, "x");
  const Matrix dy = random_matrix(m, wide, "dy");
  // The same operands in the type of the product, and dy also transposed.
  std::vector<Bfloat16> x_half(static_cast<std::size_t>(x.size()));
  std::vector<Bfloat16> dy_half(static_cast<std::size_t>(dy.size()));
  to_bfloat16(x.data(), x_half.data(), x.size());
  to_bfloat16(dy.data(), dy_half.data(), dy.size());
  const bool half = gemm::uses_bfloat16(precision);
  const gemm::Operand x_block =
      half ? gemm::Operand(x_half.data(), m, k, wide) : gemm::Operand(x.data(), m, k, wide);
  const gemm::Operand dy_block =
      half ? gemm::Operand(dy_half.data(), m, n, wide) : gemm::Operand(dy.data(), m, n, wide);

  Matrix out = Matrix::Constant(m, wide, 1);
  gemm::serial::forward(x_block, weights.first.packed(), out.middleCols(3, n));
  CHECK(max_difference(out.middleCols(3, n), naive_forward(x.leftCols(k), weights.first.value(), precision)) <
        tolerance(k));
  CHECK(out.leftCols(3) == Matrix::Ones(m, 3));
  CHECK(out.rightCols(wide - 3 - n) == Matrix::Ones(m, wide - 3 - n));

  gemm::serial::backward_input(dy_block, weights.first.packed(), out.leftCols(k), true);
  Eigen::MatrixXd expected =
      naive_forward(dy.leftCols(n), Matrix(weights.first.value().transpose()), precision);
  expected.leftCols(3).array() += 1;
  expected.middleCols(3, n) += naive_forward(x.leftCols(k), weights.first.value(), precision);
  expected.rightCols(k - 3 - n).array() += 1;
  CHECK(max_difference(out.leftCols(k), expected) < tolerance(n) + tolerance(k));

  const Eigen::MatrixXd expected_dw =
      naive_forward(dy.leftCols(n).transpose(), x.leftCols(k).transpose(), precision);
  Matrix dw(n, k);
  gemm::serial::backward_weight(dy_block, x_block, dw);
  CHECK(max_difference(dw, expected_dw) < tolerance(m));

  const Matrix dy_t = dy.leftCols(n).transpose();
  std::vector<Bfloat16> dy_t_half(static_cast<std::size_t>(dy_t.size()));
  to_bfloat16(dy_t.data(), dy_t_half.data(), dy_t.size());
  const gemm::Operand stored_transposed =
      half ? gemm::Operand(dy_t_half.data(), n, m, m) : gemm::Operand(dy_t.data(), n, m, m);
  gemm::serial::backward_weight(stored_transposed.transposed(), x_block, dw);
  CHECK(max_difference(dw, expected_dw) < tolerance(m));
}

TEST_CASE("multiply-adds are counted exactly", "[gemm]") {
  const std::uint64_t before = gemm::multiply_adds();
  const Matrix x = random_matrix(300, 20, "x");
  const Matrix w = random_matrix(30, 20, "w");
  Matrix y(300, 30);
  gemm::forward(x, w, y, Precision::float32);
  CHECK(gemm::multiply_adds() - before == 300 * 30 * 20);
  gemm::forward(x, w, y, Precision::bfloat16);
  Matrix dw(30, 20);
  gemm::backward_weight(y, x, dw, Precision::float32);
  CHECK(gemm::multiply_adds() - before == 3 * 300 * 30 * 20);

  Weights weights(30, 20);
  ParameterStore store(weights, 5);
  Matrix block(32, 30);
  gemm::serial::forward(gemm::Operand(x.topRows(32)), weights.first.packed(), block, false, 29);
  CHECK(gemm::multiply_adds() - before == (3 * 300 + 29) * 30 * 20);
}

TEST_CASE("bfloat16 rounds to nearest even and keeps what is not a number", "[gemm]") {
  // 1 + 2^-8 lies in the middle between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between that and 1 + 2^-6.
  std::vector<Scalar> values{1.0F,         1.00390625F,  1.01171875F,
                             1.00390637F,  -1.00390637F, 3.0e38F,
                             0.0F,         -2.5F,        std::numeric_limits<float>::infinity(),
                             std::nanf("")};
  values.resize(40, 1.01171875F);  // reaches the vector path
  std::vector<Bfloat16> rounded(values.size());
  to_bfloat16(values.data(), rounded.data(), static_cast<Index>(values.size()));
  const float expected[] = {1.0F, 1.0F, 1.015625F, 1.0078125F, -1.0078125F, 3.004e38F, 0.0F, -2.5F};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK_THAT(value_of(rounded[i]), Catch::Matchers::WithinRel(expected[i], i == 5 ? 1e-3F : 0.0F));
  }
  CHECK(std::isinf(value_of(rounded[8])));
  CHECK(std::isnan(value_of(rounded[9])));
  for (std::size_t i = 10; i < rounded.size(); ++i) CHECK(value_of(rounded[i]) == 1.015625F);
}

TEST_CASE("products refuse shapes that do not fit", "[gemm]") {
  Matrix y(2, 3);
  CHECK_THROWS_AS(gemm::forward(Matrix::Zero(2, 4), Matrix::Zero(3, 5), y, Precision::float32), Error);
  CHECK_THROWS_AS(gemm::backward_input(Matrix::Zero(2, 4), Matrix::Zero(3, 5), y, Precision::float32), Error);
  CHECK_THROWS_AS(gemm::backward_weight(Matrix::Zero(2, 4), Matrix::Zero(3, 5), y, Precision::float32),
                  Error);
  Weights weights(3, 5);
  ParameterStore store(weights, 5);
  CHECK_THROWS_AS(gemm::forward(Matrix::Zero(2, 4), weights.first.packed(), y, Precision::float32), Error);
  Parameter other(3, 4, Init::normal(1));
  CHECK_THROWS_AS(gemm::PackedWeight({&weights.first, &other}), Error);
}

TEST_CASE("a product is not written over one of its factors", "[gemm]") {
  Matrix c{{1.0F, 2.0F}, {3.0F, 4.0F}};
  const Matrix swap{{0.0F, 1.0F}, {1.0F, 0.0F}};
  CHECK_THROWS_WITH(gemm::backward_input(c, swap, c, Precision::float32), Contains("lies over a factor"));
  CHECK_THROWS_AS(gemm::forward(swap, c, c, Precision::float32), Error);
  CHECK_THROWS_AS(gemm::backward_weight(c, swap, c, Precision::float32), Error);
  CHECK_THROWS_AS(gemm::backward_weight(swap, c, c, Precision::float32), Error);
  Weights weights(2, 2);
  ParameterStore store(weights, 5);
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    CHECK_THROWS_WITH(gemm::forward(c, weights.first.packed(), c, precision), Contains("lies over a factor"));
    CHECK_THROWS_WITH(gemm::backward_input(c, weights.first.packed(), c, precision),
                      Contains("lies over a factor"));
  }
  CHECK(c == Matrix{{1.0F, 2.0F}, {3.0F, 4.0F}});
  Matrix product(2, 2);
  gemm::backward_input(c, swap, product, Precision::float32);
  CHECK(product == Matrix{{2.0F, 1.0F}, {4.0F, 3.0F}});
  // Blocks of one matrix that do not touch are fine.
  Matrix both(4, 2);
  both.topRows(2) = c;
  gemm::backward_input(both.topRows(2), swap, both.bottomRows(2), Precision::float32);
  CHECK(both.bottomRows(2) == product);
}

// Run a second time with the instruction set limited through ONEDNN_MAX_CPU_ISA, which changes what is
// chosen.
TEST_CASE("the backend says what runs", "[gemm]") {
  const std::string float32 = gemm::backend(Precision::float32);
  CHECK((float32.rfind("oneDNN ", 0) == 0 || float32.rfind("Eigen ", 0) == 0));
  if (gemm::bfloat16_is_native()) {
    CHECK(gemm::backend(Precision::bfloat16) != float32);
  } else {
    CHECK(gemm::backend(Precision::bfloat16) == float32);
  }
}

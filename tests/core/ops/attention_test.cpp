#include "core/ops/attention.hpp"

#include "core/ops/dropout.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>
#include <complex>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

namespace {

struct Case {
  Index num_sequences = 2, seq_len = 5, d_head = 4;
  std::vector<std::uint8_t> is_real;
  ops::AttentionOptions options;

  Matrix random(Index heads, unsigned stream) const {
    return random_matrix(num_sequences * seq_len, heads * d_head, stream);
  }
  std::vector<Matrix> inputs() const {
    return {random(options.num_heads, 1), random(options.num_kv_heads, 2), random(options.num_kv_heads, 3)};
  }
  Variable run(const std::vector<Variable>& x) const {
    return ops::attention(x[0], x[1], x[2], seq_len, is_real, options);
  }
};

// Head `head` of row n, turned by its position: features i and i + d_head / 2 are a complex number.
std::vector<std::complex<double>> head_of(const Case& c, const Matrix& x, Index n, Index head, bool turn) {
  std::vector<std::complex<double>> z;
  for (Index i = 0; i < c.d_head / 2; ++i) {
    const double angle = double(n % c.seq_len) * std::pow(10000.0, -2.0 * double(i) / double(c.d_head));
    const std::complex<double> pair(x(n, head * c.d_head + i), x(n, head * c.d_head + i + c.d_head / 2));
    z.push_back(turn ? pair * std::polar(1.0, angle) : pair);
  }
  return z;
}

// One query at a time, with loops.
Matrix by_hand(const Case& c, const std::vector<Matrix>& x) {
  Matrix y = Matrix::Zero(x[0].rows(), x[0].cols());
  const bool turn = c.options.rotary != nullptr;
  for (Index n = 0; n < y.rows(); ++n) {
    const Index first = n / c.seq_len * c.seq_len;
    for (Index h = 0; h < c.options.num_heads; ++h) {
      const Index kv = h / (c.options.num_heads / c.options.num_kv_heads);
      const auto query = head_of(c, x[0], n, h, turn);
      std::vector<double> weight(static_cast<std::size_t>(c.seq_len), 0.0);
      double total = 0;
      for (Index j = 0; j < c.seq_len; ++j) {
        if (c.options.causal && first + j > n) continue;
        if (!c.is_real.empty() && !c.is_real[static_cast<std::size_t>(first + j)]) continue;
        const auto key = head_of(c, x[1], first + j, kv, turn);
        double score = 0;
        for (std::size_t i = 0; i < key.size(); ++i) score += (query[i] * std::conj(key[i])).real();
        weight[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(double(c.d_head)));
        total += weight[static_cast<std::size_t>(j)];
      }
      if (total == 0) continue;
      for (Index j = 0; j < c.seq_len; ++j) {
        y.row(n).segment(h * c.d_head, c.d_head) += weight[static_cast<std::size_t>(j)] / total *
                                                    x[2].row(first + j).segment(kv * c.d_head, c.d_head);
      }
    }
  }
  return y;
}

std::vector<Case> cases() {
  std::vector<Case> all(6);
  all[0].options = {.num_heads = 2, .num_kv_heads = 2, .causal = true};
  all[1].options = {.num_heads = 4, .num_kv_heads = 2, .causal = false};
  all[2].options = {.num_heads = 3, .num_kv_heads = 1, .causal = true};
  all[2].options.rotary = std::make_shared<ops::RotaryTable>(8, 4, 10000.0);
  all[3] = all[1];
  all[3].options.rotary = all[2].options.rotary;
  all[3].is_real = {1, 1, 0, 1, 0, 1, 1, 1, 1, 1};
  all[4] = all[0];
  all[4].is_real = {0, 1, 1, 1, 1, 0, 0, 0, 0, 0};  // a query without any key; a sequence of padding
  all[5] = all[0];                                  // more than one block of queries
  all[5].num_sequences = 1;
  all[5].seq_len = 131;
  all[5].d_head = 2;
  return all;
}

std::vector<Variable> variables(const std::vector<Matrix>& x) { return {x.begin(), x.end()}; }

}  // namespace

TEST_CASE("attention agrees with a loop over queries and keys", "[ops][attention]") {
  for (const Case& c : cases()) {
    const std::vector<Matrix> x = c.inputs();
    CHECK((c.run(variables(x)).value() - by_hand(c, x)).cwiseAbs().maxCoeff() < 1e-13);
  }
}

TEST_CASE("attention has the right gradients", "[ops][attention][gradient]") {
  for (const Case& c : cases()) {
    const auto f = [&c](const std::vector<Variable>& x) { return c.run(x); };
    CHECK(gradient_mismatch(f, c.inputs(), {.max_entries = 60}) == "");
  }
}

TEST_CASE("attention dropout thins the weights, the same way backward", "[ops][attention][gradient]") {
  Case c = cases()[0];
  const std::vector<Matrix> x = c.inputs();
  const Matrix without = c.run(variables(x)).value();
  c.options.dropout = 0.4;
  c.options.stream = random::Stream(3, "dropout");
  const auto f = [&c](const std::vector<Variable>& v) { return c.run(v); };
  CHECK_FALSE(f(variables(x)).value() == without);
  CHECK(gradient_mismatch(f, x) == "");
  // The first query of a sequence has one key, of weight 1: it is kept or dropped as a whole.
  const Matrix y = f(variables(x)).value();
  for (Index n = 0; n < y.rows(); n += c.seq_len) {
    for (Index h = 0; h < 2; ++h) {
      const auto index = static_cast<std::uint64_t>((n / c.seq_len * 2 + h) * c.seq_len * c.seq_len);
      Scalar factor = 0;
      ops::DropoutMask(0.4, *c.options.stream).factors(index, 1, &factor);
      CHECK((y.row(n).segment(h * 4, 4) - factor * x[2].row(n).segment(h * 4, 4)).cwiseAbs().maxCoeff() <
            1e-14);
    }
  }
}

TEST_CASE("causal attention does not look ahead", "[ops][attention]") {
  const Case c = cases()[2];
  std::vector<Matrix> x = c.inputs();
  const Matrix before = c.run(variables(x)).value();
  for (Matrix& m : x) m.row(3).setConstant(9);
  const Matrix after = c.run(variables(x)).value();
  CHECK(before.topRows(3) == after.topRows(3));
  CHECK_FALSE(before.row(4) == after.row(4));
  CHECK(before.bottomRows(5) == after.bottomRows(5));  // the other sequence
}

TEST_CASE("attention refuses shapes that do not fit", "[ops][attention]") {
  Case c = cases()[0];
  c.options.num_kv_heads = 3;
  CHECK_THROWS_WITH(c.run(variables(c.inputs())), Contains("num_kv_heads=3 does not divide num_heads=2"));
  Case d = cases()[2];
  d.options.rotary = std::make_shared<ops::RotaryTable>(4, 4, 10000.0);
  CHECK_THROWS_WITH(d.run(variables(d.inputs())), Contains("4 positions"));
  CHECK_THROWS_WITH(ops::RotaryTable(4, 3, 10000.0), Contains("d_head=3 is not even"));
}

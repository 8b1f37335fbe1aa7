#include "core/ops/attention.hpp"

#include "core/error.hpp"
#include "core/gemm.hpp"
#include "core/ops/dropout.hpp"
#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace moelab::ops {

namespace {

constexpr Index kQueries = 64;  // rows of the weights that exist at a time, in each task
constexpr gemm::Precision kPrecision = gemm::Precision::float32;
constexpr Scalar kMinusInfinity = -std::numeric_limits<Scalar>::infinity();

using HeadView = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
using ConstHeadView = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;

// Shapes and settings of one call, and what both passes do with them.
class Heads {
 public:
  Heads(const Variable& q, const Variable& k, const Variable& v, Index seq_len,
        std::span<const std::uint8_t> is_real, AttentionOptions options)
      : options_(std::move(options)), seq_len_(seq_len), is_real_(is_real.begin(), is_real.end()) {
    const Index heads = options_.num_heads, kv_heads = options_.num_kv_heads;
    require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0,
            "[attention] num_kv_heads={} does not divide num_heads={}", kv_heads, heads);
    require(q.cols() % heads == 0, "[attention] width {} is not divisible by num_heads={}", q.cols(), heads);
    d_head_ = q.cols() / heads;
    for (const Variable& x : {k, v}) {
      require(x.rows() == q.rows() && x.cols() == kv_heads * d_head_,
              "[attention] queries ({}, {}) and keys or values ({}, {}) with num_kv_heads={}", q.rows(),
              q.cols(), x.rows(), x.cols(), kv_heads);
    }
    require(seq_len > 0 && q.rows() % seq_len == 0, "[attention] {} rows are not whole sequences of {}",
            q.rows(), seq_len);
    num_sequences_ = q.rows() / seq_len;
    require(is_real_.empty() || static_cast<Index>(is_real_.size()) == q.rows(),
            "[attention] {} marks for {} rows", is_real_.size(), q.rows());
    if (options_.rotary) {
      const Matrix& cos = options_.rotary->cos;
      require(cos.rows() >= seq_len && 2 * cos.cols() == d_head_,
              "[attention] rotary table of {} positions and width {} for seq_len={}, d_head={}", cos.rows(),
              2 * cos.cols(), seq_len, d_head_);
    }
    require(options_.dropout == 0 || options_.stream, "[attention] dropout without a random stream");
  }

  Index seq_len() const { return seq_len_; }
  Index num_sequences() const { return num_sequences_; }
  Index num_heads() const { return options_.num_heads; }
  Index num_kv_heads() const { return options_.num_kv_heads; }
  Index d_head() const { return d_head_; }
  Index group_size() const { return options_.num_heads / options_.num_kv_heads; }
  Scalar scale() const { return static_cast<Scalar>(1 / std::sqrt(static_cast<double>(d_head_))); }
  Index rows_from(Index begin) const { return std::min(kQueries, seq_len_ - begin); }
  // Keys that the queries [begin, begin + rows) may see, as one range from the first.
  Index keys_of(Index begin, Index rows) const { return options_.causal ? begin + rows : seq_len_; }

  // The columns of one head of one sequence in a (N, heads * d_head) matrix.
  ConstHeadView view(ConstMatrixView x, Index sequence, Index head) const {
    return {x.data() + sequence * seq_len_ * x.cols() + head * d_head_, seq_len_, d_head_,
            Eigen::OuterStride<>(x.cols())};
  }
  HeadView view(Matrix& x, Index sequence, Index head) const {
    return {x.data() + sequence * seq_len_ * x.cols() + head * d_head_, seq_len_, d_head_,
            Eigen::OuterStride<>(x.cols())};
  }

  // Copies a head, times `factor` and turned by its positions: forward with sign 1, back with sign -1.
  void rotate(In from, Scalar factor, Scalar sign, Out to) const {
    if (!options_.rotary) {
      to = factor * from;
      return;
    }
    const Index half = d_head_ / 2, from_stride = from.outerStride(), to_stride = to.outerStride();
    for (Index t = 0; t < seq_len_; ++t) {
      const Scalar* cos = options_.rotary->cos.data() + t * half;
      const Scalar* sin = options_.rotary->sin.data() + t * half;
      const Scalar* x = from.data() + t * from_stride;
      Scalar* y = to.data() + t * to_stride;
      math::for_entries(half, [=](Index i) {
        const Scalar a = factor * x[i], b = factor * x[i + half];
        y[i] = a * cos[i] - sign * b * sin[i];
        y[i + half] = b * cos[i] + sign * a * sin[i];
      });
    }
  }
  Matrix turned(In from, Scalar factor) const {
    Matrix to(seq_len_, d_head_);
    rotate(from, factor, 1, to);
    return to;
  }

  // Sets the scores of the keys among the first num_keys that query t may not see to -inf.
  void mask(Scalar* scores, Index sequence, Index t, Index num_keys) const {
    if (options_.causal) std::fill(scores + t + 1, scores + num_keys, kMinusInfinity);
    if (is_real_.empty()) return;
    const std::uint8_t* real = is_real_.data() + sequence * seq_len_;
    for (Index j = 0; j < num_keys; ++j) scores[j] = real[j] ? scores[j] : kMinusInfinity;
  }

  bool has_dropout() const { return options_.dropout > 0; }
  // The dropout factors of the weights of query t on the first num_keys keys.
  void dropout_factors(Index sequence, Index head, Index t, Index num_keys, Scalar* out) const {
    const Index first = ((sequence * num_heads() + head) * seq_len_ + t) * seq_len_;
    DropoutMask(options_.dropout, *options_.stream).factors(static_cast<std::uint64_t>(first), num_keys, out);
  }

 private:
  AttentionOptions options_;
  Index seq_len_, num_sequences_ = 0, d_head_ = 0;
  std::vector<std::uint8_t> is_real_;
};

// Row of scores -> weights of sum `total`; rows without a finite score become zeros of log-sum-exp 0.
struct RowSum {
  Scalar total, log_sum_exp;
};
RowSum exponentiate(Scalar* row, Index num_keys) {
  const Scalar largest = math::largest_entry(row, num_keys);
  const Scalar shift = largest == kMinusInfinity ? Scalar{0} : largest;
  const Scalar total =
      math::sum_entries(num_keys, [=](Index j) { return row[j] = math::exp(row[j] - shift); });
  return {total, total == 0 ? Scalar{0} : shift + std::log(total)};
}

// One head of one sequence. Writes its columns of y and its row of log_sum_exp.
void forward_head(const Heads& heads, const Variable& q, const Variable& k, const Variable& v, Index sequence,
                  Index head, Matrix& y, Matrix& log_sum_exp) {
  const Index kv_head = head / heads.group_size(), seq_len = heads.seq_len();
  const Matrix queries = heads.turned(heads.view(q.value(), sequence, head), heads.scale());
  const Matrix keys = heads.turned(heads.view(k.value(), sequence, kv_head), 1);
  const ConstHeadView values = heads.view(v.value(), sequence, kv_head);
  HeadView out = heads.view(y, sequence, head);
  Matrix buffer(kQueries, seq_len), dropout(1, heads.has_dropout() ? seq_len : 0);
  for (Index begin = 0; begin < seq_len; begin += kQueries) {
    const Index rows = heads.rows_from(begin), num_keys = heads.keys_of(begin, rows);
    MatrixView weights(buffer.data(), rows, num_keys);
    gemm::forward(queries.middleRows(begin, rows), keys.topRows(num_keys), weights, kPrecision);
    Scalar totals[kQueries];
    for (Index i = 0; i < rows; ++i) {
      Scalar* row = weights.data() + i * num_keys;
      heads.mask(row, sequence, begin + i, num_keys);
      const RowSum sum = exponentiate(row, num_keys);
      log_sum_exp(sequence * heads.num_heads() + head, begin + i) = sum.log_sum_exp;
      totals[i] = sum.total;
      if (heads.has_dropout()) {
        Scalar* factors = dropout.data();
        heads.dropout_factors(sequence, head, begin + i, num_keys, factors);
        math::for_entries(num_keys, [=](Index j) { row[j] *= factors[j]; });
      }
    }
    gemm::backward_input(weights, values.topRows(num_keys), out.middleRows(begin, rows), kPrecision);
    for (Index i = 0; i < rows; ++i) {
      if (totals[i] != 0) out.row(begin + i) *= 1 / totals[i];
    }
  }
}

// dscore_j = p_j (m_j dp_j - dot) and p_j *= m_j, with m the dropout factors and dot = <dy, y> = sum_j p_j
// m_j dp_j. p comes in as scores.
void backward_row(const Heads& heads, Index sequence, Index head, Index t, Index num_keys, Scalar log_sum_exp,
                  Scalar dot, Scalar* p, Scalar* dp, Scalar* factors) {
  heads.mask(p, sequence, t, num_keys);
  if (heads.has_dropout()) {
    heads.dropout_factors(sequence, head, t, num_keys, factors);
    math::for_entries(num_keys, [=](Index j) {
      const Scalar weight = math::exp(p[j] - log_sum_exp);
      dp[j] = weight * (factors[j] * dp[j] - dot);
      p[j] = weight * factors[j];
    });
    return;
  }
  math::for_entries(num_keys, [=](Index j) {
    const Scalar weight = math::exp(p[j] - log_sum_exp);
    dp[j] = weight * (dp[j] - dot);
    p[j] = weight;
  });
}

struct Gradients {
  Matrix dq, dk, dv;
};

// One key-value head of one sequence, with all the query heads that read it, in order. Writes its columns.
void backward_kv_head(const Heads& heads, const Variable& q, const Variable& k, const Variable& v,
                      Index sequence, Index kv_head, const Matrix& y, const Matrix& dy,
                      const Matrix& log_sum_exp, Gradients& gradients) {
  const Index seq_len = heads.seq_len(), d_head = heads.d_head();
  const Matrix keys = heads.turned(heads.view(k.value(), sequence, kv_head), 1);
  const ConstHeadView values = heads.view(v.value(), sequence, kv_head);
  Matrix dkeys = Matrix::Zero(seq_len, d_head), dvalues = Matrix::Zero(seq_len, d_head);
  Matrix dqueries(seq_len, d_head);
  Matrix p_buffer(kQueries, seq_len), dp_buffer(kQueries, seq_len),
      dropout(1, heads.has_dropout() ? seq_len : 0);
  for (Index head = kv_head * heads.group_size(); head < (kv_head + 1) * heads.group_size(); ++head) {
    const Matrix queries = heads.turned(heads.view(q.value(), sequence, head), heads.scale());
    const ConstHeadView out = heads.view({y.data(), y.rows(), y.cols()}, sequence, head);
    const ConstHeadView dout = heads.view({dy.data(), dy.rows(), dy.cols()}, sequence, head);
    for (Index begin = 0; begin < seq_len; begin += kQueries) {
      const Index rows = heads.rows_from(begin), num_keys = heads.keys_of(begin, rows);
      MatrixView p(p_buffer.data(), rows, num_keys), dp(dp_buffer.data(), rows, num_keys);
      gemm::forward(queries.middleRows(begin, rows), keys.topRows(num_keys), p, kPrecision);
      gemm::forward(dout.middleRows(begin, rows), values.topRows(num_keys), dp, kPrecision);
      for (Index i = 0; i < rows; ++i) {
        const Scalar* o = out.data() + (begin + i) * out.outerStride();
        const Scalar* d = dout.data() + (begin + i) * dout.outerStride();
        const Scalar dot = math::sum_entries(d_head, [=](Index j) { return o[j] * d[j]; });
        backward_row(heads, sequence, head, begin + i, num_keys,
                     log_sum_exp(sequence * heads.num_heads() + head, begin + i), dot, p.row(i).data(),
                     dp.row(i).data(), dropout.data());
      }
      gemm::backward_weight(p, dout.middleRows(begin, rows), dvalues.topRows(num_keys), kPrecision, true);
      gemm::backward_weight(dp, queries.middleRows(begin, rows), dkeys.topRows(num_keys), kPrecision, true);
      gemm::backward_input(dp, keys.topRows(num_keys), dqueries.middleRows(begin, rows), kPrecision);
    }
    heads.rotate(dqueries, heads.scale(), -1, heads.view(gradients.dq, sequence, head));
  }
  heads.rotate(dkeys, 1, -1, heads.view(gradients.dk, sequence, kv_head));
  heads.view(gradients.dv, sequence, kv_head) = dvalues;
}

}  // namespace

RotaryTable::RotaryTable(Index num_positions, Index d_head, double theta)
    : cos(num_positions, d_head / 2), sin(num_positions, d_head / 2) {
  require(d_head > 0 && d_head % 2 == 0, "[rotary] d_head={} is not even", d_head);
  for (Index t = 0; t < num_positions; ++t) {
    for (Index i = 0; i < d_head / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(d_head);
      const double angle = static_cast<double>(t) * std::pow(theta, exponent);
      cos(t, i) = static_cast<Scalar>(std::cos(angle));
      sin(t, i) = static_cast<Scalar>(std::sin(angle));
    }
  }
}

Variable attention(const Variable& q, const Variable& k, const Variable& v, Index seq_len,
                   std::span<const std::uint8_t> is_real, const AttentionOptions& options) {
  const auto heads = std::make_shared<const Heads>(q, k, v, seq_len, is_real, options);
  Matrix value(q.rows(), q.cols());
  Matrix log_sum_exp(heads->num_sequences() * heads->num_heads(), seq_len);
  parallel::for_each(log_sum_exp.rows(), [&](Index i) {
    forward_head(*heads, q, k, v, i / heads->num_heads(), i % heads->num_heads(), value, log_sum_exp);
  });
  return Variable::result(
      std::move(value), {q, k, v},
      [heads, q, k, v, log_sum_exp = std::move(log_sum_exp)](const Matrix& y, const Matrix& dy) {
        Gradients gradients{Matrix(q.rows(), q.cols()), Matrix(k.rows(), k.cols()),
                            Matrix(v.rows(), v.cols())};
        const Index kv_heads = heads->num_kv_heads();
        parallel::for_each(heads->num_sequences() * kv_heads, [&](Index i) {
          backward_kv_head(*heads, q, k, v, i / kv_heads, i % kv_heads, y, dy, log_sum_exp, gradients);
        });
        if (q.requires_grad()) q.add_grad(std::move(gradients.dq));
        if (k.requires_grad()) k.add_grad(std::move(gradients.dk));
        if (v.requires_grad()) v.add_grad(std::move(gradients.dv));
      });
}

}  // namespace moelab::ops

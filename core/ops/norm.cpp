#include "core/ops/norm.hpp"

#include "core/error.hpp"
#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <cmath>
#include <limits>

namespace moelab::ops {

namespace {

constexpr Index kBlock = 64;  // rows of a task

// xhat = (x - mean) * inverse is what gain and bias are applied to. The derivative of `inverse` takes part in
// dx with the factor `pull`: 1 where epsilon lies inside the root, (std + epsilon) / std outside.
struct RowStatistics {
  Scalar mean, inverse, pull;
};

struct Kind {
  bool centred;  // LayerNorm; false: RMSNorm
  bool epsilon_outside;
  Scalar epsilon;
};

// Of a row whose sums overflow in Scalar: in double. Where even the inverse is too small for Scalar, it is
// NaN, so that the overflow is found; 0 would make the row 0 and hide it.
RowStatistics statistics_of_large(const Scalar* x, Index d, Kind kind) {
  const auto n = static_cast<double>(d);
  const auto epsilon = static_cast<double>(kind.epsilon);
  double mean = 0, square = 0;
  for (Index j = 0; kind.centred && j < d; ++j) mean += static_cast<double>(x[j]) / n;
  for (Index j = 0; j < d; ++j) {
    const double difference = static_cast<double>(x[j]) - mean;
    square += difference * difference / n;
  }
  const double deviation = std::sqrt(square);
  const double inverse = kind.epsilon_outside ? 1 / (deviation + epsilon) : 1 / std::sqrt(square + epsilon);
  const bool fits = inverse >= static_cast<double>(std::numeric_limits<Scalar>::min());
  return {static_cast<Scalar>(mean),
          fits ? static_cast<Scalar>(inverse) : std::numeric_limits<Scalar>::quiet_NaN(),
          static_cast<Scalar>(kind.epsilon_outside ? (deviation + epsilon) / deviation : 1)};
}

RowStatistics statistics_of(const Scalar* x, Index d, Kind kind) {
  const auto n = static_cast<Scalar>(d);
  const Scalar mean = kind.centred ? math::sum_entries(d, [=](Index j) { return x[j]; }) / n : Scalar{0};
  const Scalar square = math::sum_entries(d, [=](Index j) { return (x[j] - mean) * (x[j] - mean); }) / n;
  if (!std::isfinite(square)) return statistics_of_large(x, d, kind);
  if (!kind.epsilon_outside) return {mean, 1 / std::sqrt(square + kind.epsilon), 1};
  const Scalar deviation = std::sqrt(square);
  // A constant row: xhat is 0, and so is the pull.
  return {mean, 1 / (deviation + kind.epsilon),
          deviation > 0 ? (deviation + kind.epsilon) / deviation : Scalar{0}};
}

void forward_row(const Scalar* x, const Scalar* g, const Scalar* b, Scalar* y, Index d, RowStatistics s) {
  if (g == nullptr) {
    math::for_entries(d, [=](Index j) { y[j] = (x[j] - s.mean) * s.inverse; });
  } else if (b == nullptr) {
    math::for_entries(d, [=](Index j) { y[j] = (x[j] - s.mean) * s.inverse * g[j]; });
  } else {
    math::for_entries(d, [=](Index j) { y[j] = (x[j] - s.mean) * s.inverse * g[j] + b[j]; });
  }
}

// dxhat = dy g;  dx = inverse (dxhat - mean(dxhat) - pull xhat mean(dxhat xhat)), the middle term only where
// the row was centred. dg += dy xhat, db += dy.
void backward_row(const Scalar* x, const Scalar* g, const Scalar* dy, Scalar* dx, Scalar* dg, Scalar* db,
                  Index d, RowStatistics s, bool centred) {
  const auto n = static_cast<Scalar>(d);
  if (g == nullptr) {
    math::for_entries(d, [=](Index j) { dx[j] = dy[j]; });
  } else {
    math::for_entries(d, [=](Index j) { dx[j] = dy[j] * g[j]; });
  }
  const Scalar along =
      math::sum_entries(d, [=](Index j) { return dx[j] * (x[j] - s.mean); }) * s.inverse * s.pull / n;
  const Scalar shift = centred ? math::sum_entries(d, [=](Index j) { return dx[j]; }) / n : Scalar{0};
  math::for_entries(d, [=](Index j) {
    const Scalar xhat = (x[j] - s.mean) * s.inverse;
    dx[j] = s.inverse * (dx[j] - shift - xhat * along);
  });
  if (dg != nullptr) {
    math::for_entries(d, [=](Index j) { dg[j] += dy[j] * (x[j] - s.mean) * s.inverse; });
  }
  if (db != nullptr) math::for_entries(d, [=](Index j) { db[j] += dy[j]; });
}

const Scalar* data_or_null(const Variable& v) { return v.defined() ? v.value().data() : nullptr; }

// Adds the rows of the partial sums in order.
void add_rows(const Matrix& partial, const Variable& parameter) {
  Matrix total = Matrix::Zero(1, partial.cols());
  for (Index i = 0; i < partial.rows(); ++i) total.row(0) += partial.row(i);
  parameter.add_grad(std::move(total));
}

Variable normalise(const Variable& x, const Variable& g, const Variable& b, Kind kind) {
  const Index rows = x.rows(), d = x.cols();
  for (const Variable& v : {g, b}) {
    require(!v.defined() || (v.rows() == 1 && v.cols() == d), "[norm] gain or bias ({}, {}) for rows of {}",
            v.defined() ? v.rows() : 0, v.defined() ? v.cols() : 0, d);
  }
  std::vector<RowStatistics> statistics(static_cast<std::size_t>(rows));
  Matrix value(rows, d);
  parallel::for_blocks(rows, kBlock, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Scalar* row = x.value().data() + i * d;
      RowStatistics& s = statistics[static_cast<std::size_t>(i)];
      s = statistics_of(row, d, kind);
      forward_row(row, data_or_null(g), data_or_null(b), value.data() + i * d, d, s);
    }
  });

  std::vector<Variable> inputs{x};
  if (g.defined()) inputs.push_back(g);
  if (b.defined()) inputs.push_back(b);
  return Variable::result(
      std::move(value), std::move(inputs),
      [x, g, b, kind, statistics = std::move(statistics)](const Matrix& y, const Matrix& dy) {
        const Index num_rows = y.rows(), width = y.cols();
        const bool want_dg = g.defined() && g.requires_grad();
        const bool want_db = b.defined() && b.requires_grad();
        const Index num_blocks = (num_rows + kBlock - 1) / kBlock;
        Matrix dg = Matrix::Zero(want_dg ? num_blocks : 0, width);  // one row of partial sums a block
        Matrix db = Matrix::Zero(want_db ? num_blocks : 0, width);
        Matrix dx(num_rows, width);
        parallel::for_blocks(num_rows, kBlock, [&](Index begin, Index end) {
          Scalar* block_dg = want_dg ? dg.data() + begin / kBlock * width : nullptr;
          Scalar* block_db = want_db ? db.data() + begin / kBlock * width : nullptr;
          for (Index i = begin; i < end; ++i) {
            backward_row(x.value().data() + i * width, data_or_null(g), dy.data() + i * width,
                         dx.data() + i * width, block_dg, block_db, width,
                         statistics[static_cast<std::size_t>(i)], kind.centred);
          }
        });
        if (want_dg) add_rows(dg, g);
        if (want_db) add_rows(db, b);
        if (x.requires_grad()) x.add_grad(std::move(dx));
      });
}

}  // namespace

Variable layer_norm(const Variable& x, const Variable& g, const Variable& b, double epsilon,
                    bool epsilon_outside) {
  require(g.defined() == b.defined(), "[layer_norm] gain and bias come together");
  return normalise(x, g, b, {true, epsilon_outside, static_cast<Scalar>(epsilon)});
}

Variable rms_norm(const Variable& x, const Variable& g, double epsilon) {
  return normalise(x, g, {}, {false, false, static_cast<Scalar>(epsilon)});
}

}  // namespace moelab::ops

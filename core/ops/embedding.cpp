#include "core/ops/embedding.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <cmath>
#include <vector>

namespace moelab::ops {

namespace {
constexpr Index kRowBlock = 256;    // rows of a task, forward
constexpr Index kColumnBlock = 64;  // columns of a task, backward: several tokens may share a row
}  // namespace

Variable embedding(const Variable& table, std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    require(id >= 0 && id < table.rows(), "[embedding] token id {} is not in [0, {})", id, table.rows());
  }
  const auto rows = static_cast<Index>(ids.size());
  Matrix y(rows, table.cols());
  parallel::for_blocks(rows, kRowBlock, [&](Index begin, Index end) {
    for (Index n = begin; n < end; ++n) y.row(n) = table.value().row(ids[static_cast<std::size_t>(n)]);
  });
  return Variable::result(
      std::move(y), {table},
      [table, saved = std::vector<std::int32_t>(ids.begin(), ids.end())](const Matrix&, const Matrix& dy) {
        MatrixView grad = table.grad();
        parallel::for_blocks(dy.cols(), kColumnBlock, [&](Index begin, Index end) {
          for (std::size_t n = 0; n < saved.size(); ++n) {
            const Scalar* from = dy.data() + static_cast<Index>(n) * dy.cols();
            Scalar* to = grad.data() + saved[n] * dy.cols();
            for (Index j = begin; j < end; ++j) to[j] += from[j];
          }
        });
      });
}

Variable add_positions(const Variable& x, const Variable& table, Index seq_len) {
  require(seq_len > 0 && x.rows() % seq_len == 0, "[add_positions] {} rows are not whole sequences of {}",
          x.rows(), seq_len);
  require(table.rows() >= seq_len && table.cols() == x.cols(),
          "[add_positions] table ({}, {}) for {} positions of width {}", table.rows(), table.cols(), seq_len,
          x.cols());
  Matrix y = x.value();
  for (Index begin = 0; begin < y.rows(); begin += seq_len) {
    y.middleRows(begin, seq_len) += table.value().topRows(seq_len);
  }
  return Variable::result(std::move(y), {x, table}, [x, table, seq_len](const Matrix&, const Matrix& dy) {
    if (table.requires_grad()) {
      MatrixView grad = table.grad();
      for (Index begin = 0; begin < dy.rows(); begin += seq_len) {
        grad.topRows(seq_len) += dy.middleRows(begin, seq_len);
      }
    }
    if (x.requires_grad()) x.add_grad(dy);
  });
}

Matrix sinusoidal_positions(Index num_positions, Index d_model) {
  Matrix table(num_positions, d_model);
  for (Index t = 0; t < num_positions; ++t) {
    for (Index j = 0; j < d_model; ++j) {
      const double exponent = static_cast<double>(j / 2 * 2) / static_cast<double>(d_model);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      table(t, j) = static_cast<Scalar>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace moelab::ops

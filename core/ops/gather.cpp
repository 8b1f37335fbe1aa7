#include "core/ops/gather.hpp"

#include "core/error.hpp"

namespace moelab::ops {

namespace {

void check_indices(const char* name, const char* axis, const std::vector<Index>& indices, Index bound) {
  for (const Index i : indices) {
    require(i >= 0 && i < bound, "[{}] {} {} is not in [0, {})", name, axis, i, bound);
  }
}

void check_entries(const char* name, const std::vector<Index>& rows, const std::vector<Index>& cols,
                   Index num_rows, Index num_cols) {
  require(rows.size() == cols.size(), "[{}] {} rows and {} columns", name, rows.size(), cols.size());
  check_indices(name, "row", rows, num_rows);
  check_indices(name, "column", cols, num_cols);
}

Index size_of(const std::vector<Index>& indices) { return static_cast<Index>(indices.size()); }

Matrix read_entries(const ConstMatrixView& x, const std::vector<Index>& rows,
                    const std::vector<Index>& cols) {
  Matrix y(size_of(rows), 1);
  for (std::size_t a = 0; a < rows.size(); ++a) y(static_cast<Index>(a), 0) = x(rows[a], cols[a]);
  return y;
}

void add_entries(const ConstMatrixView& values, const std::vector<Index>& rows,
                 const std::vector<Index>& cols, MatrixView y) {
  for (std::size_t a = 0; a < rows.size(); ++a) y(rows[a], cols[a]) += values(static_cast<Index>(a), 0);
}

Matrix read_rows(const ConstMatrixView& x, const std::vector<Index>& rows) {
  Matrix y(size_of(rows), x.cols());
  for (std::size_t a = 0; a < rows.size(); ++a) y.row(static_cast<Index>(a)) = x.row(rows[a]);
  return y;
}

void add_rows(const ConstMatrixView& values, const std::vector<Index>& rows, MatrixView y) {
  for (std::size_t a = 0; a < rows.size(); ++a) y.row(rows[a]) += values.row(static_cast<Index>(a));
}

ConstMatrixView view(const Matrix& m) { return {m.data(), m.rows(), m.cols()}; }

}  // namespace

Variable gather_entries(const Variable& x, std::vector<Index> rows, std::vector<Index> cols) {
  check_entries("gather_entries", rows, cols, x.rows(), x.cols());
  Matrix y = read_entries(x.value(), rows, cols);
  return Variable::result(
      std::move(y), {x},
      [x, rows = std::move(rows), cols = std::move(cols)](const Matrix&, const Matrix& dy) {
        add_entries(view(dy), rows, cols, x.grad());
      });
}

Variable gather_rows(const Variable& x, std::vector<Index> rows) {
  check_indices("gather_rows", "row", rows, x.rows());
  Matrix y = read_rows(x.value(), rows);
  return Variable::result(std::move(y), {x}, [x, rows = std::move(rows)](const Matrix&, const Matrix& dy) {
    add_rows(view(dy), rows, x.grad());
  });
}

Variable scatter_entries(const Variable& values, std::vector<Index> rows, std::vector<Index> cols,
                         Index num_rows, Index num_cols) {
  require(values.rows() == size_of(rows) && values.cols() == 1,
          "[scatter_entries] values ({}, {}) for {} entries", values.rows(), values.cols(), rows.size());
  check_entries("scatter_entries", rows, cols, num_rows, num_cols);
  Matrix y = Matrix::Zero(num_rows, num_cols);
  add_entries(values.value(), rows, cols, {y.data(), num_rows, num_cols});
  return Variable::result(
      std::move(y), {values},
      [values, rows = std::move(rows), cols = std::move(cols)](const Matrix&, const Matrix& dy) {
        values.add_grad(read_entries(view(dy), rows, cols));
      });
}

Variable scatter_rows(const Variable& values, std::vector<Index> rows, Index num_rows) {
  require(values.rows() == size_of(rows), "[scatter_rows] values ({}, {}) for {} rows", values.rows(),
          values.cols(), rows.size());
  check_indices("scatter_rows", "row", rows, num_rows);
  Matrix y = Matrix::Zero(num_rows, values.cols());
  add_rows(values.value(), rows, {y.data(), y.rows(), y.cols()});
  return Variable::result(std::move(y), {values},
                          [values, rows = std::move(rows)](const Matrix&, const Matrix& dy) {
                            values.add_grad(read_rows(view(dy), rows));
                          });
}

}  // namespace moelab::ops

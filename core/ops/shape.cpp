#include "core/ops/shape.hpp"

#include "core/error.hpp"

namespace moelab::ops {

Variable slice_rows(const Variable& x, Index begin, Index count) {
  require(begin >= 0 && count >= 0 && begin + count <= x.rows(), "[slice_rows] {} rows from {} of ({}, {})",
          count, begin, x.rows(), x.cols());
  return Variable::result(
      x.value().middleRows(begin, count), {x},
      [x, begin, count](const Matrix&, const Matrix& dy) { x.grad().middleRows(begin, count) += dy; });
}

Variable slice_columns(const Variable& x, Index begin, Index count) {
  require(begin >= 0 && count >= 0 && begin + count <= x.cols(),
          "[slice_columns] {} columns from {} of ({}, {})", count, begin, x.rows(), x.cols());
  return Variable::result(
      x.value().middleCols(begin, count), {x},
      [x, begin, count](const Matrix&, const Matrix& dy) { x.grad().middleCols(begin, count) += dy; });
}

Variable concat_rows(const std::vector<Variable>& parts) {
  require(!parts.empty(), "[concat_rows] no parts");
  Index rows = 0;
  for (const Variable& part : parts) {
    require(part.cols() == parts[0].cols(), "[concat_rows] widths {} and {}", parts[0].cols(), part.cols());
    rows += part.rows();
  }
  Matrix y(rows, parts[0].cols());
  Index begin = 0;
  for (const Variable& part : parts) {
    y.middleRows(begin, part.rows()) = part.value();
    begin += part.rows();
  }
  return Variable::result(std::move(y), parts, [parts](const Matrix&, const Matrix& dy) {
    Index row = 0;
    for (const Variable& part : parts) {
      if (part.requires_grad()) part.add_grad(dy.middleRows(row, part.rows()));
      row += part.rows();
    }
  });
}

Variable concat_columns(const std::vector<Variable>& parts) {
  require(!parts.empty(), "[concat_columns] no parts");
  Index cols = 0;
  for (const Variable& part : parts) {
    require(part.rows() == parts[0].rows(), "[concat_columns] heights {} and {}", parts[0].rows(),
            part.rows());
    cols += part.cols();
  }
  Matrix y(parts[0].rows(), cols);
  Index begin = 0;
  for (const Variable& part : parts) {
    y.middleCols(begin, part.cols()) = part.value();
    begin += part.cols();
  }
  return Variable::result(std::move(y), parts, [parts](const Matrix&, const Matrix& dy) {
    Index col = 0;
    for (const Variable& part : parts) {
      if (part.requires_grad()) part.add_grad(dy.middleCols(col, part.cols()));
      col += part.cols();
    }
  });
}

Variable transpose(const Variable& x) {
  return Variable::result(x.value().transpose(), {x},
                          [x](const Matrix&, const Matrix& dy) { x.add_grad(dy.transpose()); });
}

}  // namespace moelab::ops

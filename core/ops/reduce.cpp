#include "core/ops/reduce.hpp"

#include "core/error.hpp"

namespace moelab::ops {

namespace {

// Row by row: the order, and so the bits, depend on the shape alone.
Matrix row_sums(ConstMatrixView x) {
  Matrix y(x.rows(), 1);
  for (Index i = 0; i < x.rows(); ++i) {
    Scalar total = 0;
    for (Index j = 0; j < x.cols(); ++j) total += x(i, j);
    y(i, 0) = total;
  }
  return y;
}

Matrix column_sums(ConstMatrixView x) {
  Matrix y = Matrix::Zero(1, x.cols());
  for (Index i = 0; i < x.rows(); ++i) y.row(0) += x.row(i);
  return y;
}

Scalar total(ConstMatrixView x) {
  // In double: the number of entries has no bound here.
  double sum = 0;
  for (Index i = 0; i < x.size(); ++i) sum += double{x.data()[i]};
  return static_cast<Scalar>(sum);
}

Variable scaled_sum(const Variable& x, Scalar factor) {
  return Variable::result(Matrix::Constant(1, 1, factor * total(x.value())), {x},
                          [x, factor](const Matrix&, const Matrix& dy) {
                            x.add_grad(Matrix::Constant(x.rows(), x.cols(), factor * dy(0, 0)));
                          });
}

Variable scaled_column_sum(const Variable& x, Scalar factor) {
  return Variable::result(factor * column_sums(x.value()), {x}, [x, factor](const Matrix&, const Matrix& dy) {
    x.add_grad((factor * dy).replicate(x.rows(), 1));
  });
}

}  // namespace

Variable sum(const Variable& x) { return scaled_sum(x, 1); }

Variable mean(const Variable& x) {
  const Index size = x.rows() * x.cols();
  require(size > 0, "[mean] of a ({}, {}) variable", x.rows(), x.cols());
  return scaled_sum(x, Scalar{1} / static_cast<Scalar>(size));
}

Variable row_sum(const Variable& x) {
  return Variable::result(row_sums(x.value()), {x},
                          [x](const Matrix&, const Matrix& dy) { x.add_grad(dy.replicate(1, x.cols())); });
}

Variable column_sum(const Variable& x) { return scaled_column_sum(x, 1); }

Variable column_mean(const Variable& x) {
  require(x.rows() > 0, "[column_mean] of a ({}, {}) variable", x.rows(), x.cols());
  return scaled_column_sum(x, Scalar{1} / static_cast<Scalar>(x.rows()));
}

Variable weighted_sum(const std::vector<Variable>& terms, const std::vector<double>& weights) {
  require(terms.size() == weights.size(), "[weighted_sum] {} terms and {} weights", terms.size(),
          weights.size());
  double value = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) value += weights[i] * double{terms[i].item()};
  return Variable::result(Matrix::Constant(1, 1, static_cast<Scalar>(value)), terms,
                          [terms, weights](const Matrix&, const Matrix& dy) {
                            for (std::size_t i = 0; i < terms.size(); ++i) {
                              if (!terms[i].requires_grad()) continue;
                              terms[i].add_grad(static_cast<Scalar>(weights[i]) * dy);
                            }
                          });
}

}  // namespace moelab::ops

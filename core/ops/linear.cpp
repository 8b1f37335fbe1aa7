#include "core/ops/linear.hpp"

#include "core/error.hpp"
#include "core/gemm_packed.hpp"
#include "core/module.hpp"
#include "core/parallel.hpp"

namespace moelab {

namespace {

// sums (1, cols) += the sum of the rows; each sum over the rows in order.
void add_column_sums(const Matrix& rows, MatrixView sums) {
  constexpr Index kBlockCols = 64;
  parallel::for_blocks(rows.cols(), kBlockCols, [&](Index begin, Index end) {
    auto block = sums.row(0).segment(begin, end - begin);
    for (Index r = 0; r < rows.rows(); ++r) block += rows.row(r).segment(begin, end - begin);
  });
}

}  // namespace

Variable linear(const Variable& x, const Variable& w, const Variable& bias, gemm::Precision precision) {
  require(x.cols() == w.cols(), "[linear] x ({}, {}) does not fit w ({}, {})", x.rows(), x.cols(), w.rows(),
          w.cols());
  require(!bias.defined() || (bias.rows() == 1 && bias.cols() == w.rows()),
          "[linear] bias ({}, {}) does not fit w ({}, {})", bias.defined() ? bias.rows() : 0,
          bias.defined() ? bias.cols() : 0, w.rows(), w.cols());

  Matrix y(x.rows(), w.rows());  // (N, out)
  if (w.parameter()) {
    gemm::forward(x.value(), w.parameter()->packed(), y, precision);
  } else {
    gemm::forward(x.value(), w.value(), y, precision);
  }
  if (bias.defined()) y.rowwise() += bias.value().row(0);

  std::vector<Variable> inputs{x, w};
  if (bias.defined()) inputs.push_back(bias);
  return Variable::result(std::move(y), std::move(inputs),
                          [x, w, bias, precision](const Matrix&, const Matrix& dy) {
                            if (x.requires_grad()) {
                              Matrix dx(x.rows(), x.cols());
                              if (w.parameter()) {
                                gemm::backward_input(dy, w.parameter()->packed(), dx, precision);
                              } else {
                                gemm::backward_input(dy, w.value(), dx, precision);
                              }
                              x.add_grad(std::move(dx));
                            }
                            if (w.requires_grad()) {
                              const bool is_first = w.parameter() && w.parameter()->take_cleared_grad();
                              gemm::backward_weight(dy, x.value(), w.grad(), precision, !is_first);
                            }
                            if (bias.defined() && bias.requires_grad()) add_column_sums(dy, bias.grad());
                          });
}

}  // namespace moelab

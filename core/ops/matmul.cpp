#include "core/ops/matmul.hpp"

#include "core/error.hpp"
#include "core/gemm.hpp"

namespace moelab::ops {

namespace {
constexpr gemm::Precision kPrecision = gemm::Precision::float32;
}

Variable matmul(const Variable& a, const Variable& b) {
  require(a.cols() == b.rows(), "[matmul] ({}, {}) times ({}, {})", a.rows(), a.cols(), b.rows(), b.cols());
  Matrix y(a.rows(), b.cols());
  gemm::backward_input(a.value(), b.value(), y, kPrecision);  // a b
  return Variable::result(std::move(y), {a, b}, [a, b](const Matrix&, const Matrix& dy) {
    if (a.requires_grad()) gemm::forward(dy, b.value(), a.grad(), kPrecision, true);          // dy b^T
    if (b.requires_grad()) gemm::backward_weight(a.value(), dy, b.grad(), kPrecision, true);  // a^T dy
  });
}

Variable matmul_transposed(const Variable& a, const Variable& b) {
  require(a.cols() == b.cols(), "[matmul_transposed] ({}, {}) times the transpose of ({}, {})", a.rows(),
          a.cols(), b.rows(), b.cols());
  Matrix y(a.rows(), b.rows());
  gemm::forward(a.value(), b.value(), y, kPrecision);
  return Variable::result(std::move(y), {a, b}, [a, b](const Matrix&, const Matrix& dy) {
    if (a.requires_grad()) gemm::backward_input(dy, b.value(), a.grad(), kPrecision, true);   // dy b
    if (b.requires_grad()) gemm::backward_weight(dy, a.value(), b.grad(), kPrecision, true);  // dy^T a
  });
}

}  // namespace moelab::ops

#include "core/gemm_serial.hpp"

#include "core/error.hpp"
#include "core/gemm_count.hpp"
#include "core/gemm_kernel.hpp"

namespace moelab::gemm {

bool uses_bfloat16(Precision precision) { return precision == Precision::bfloat16 && bfloat16_is_native(); }

Operand Operand::middle_cols(Index begin, Index count) const {
  require(!is_transposed_, "[gemm] columns of a transposed operand");
  Operand block = *this;
  block.data_ = static_cast<const char*>(data_) +
                begin * static_cast<Index>(bfloat16_ ? sizeof(Bfloat16) : sizeof(Scalar));
  block.cols_ = count;
  return block;
}

namespace serial {

namespace {

Precision precision_of(const Operand& operand) {
  return operand.is_bfloat16() ? Precision::bfloat16 : Precision::float32;
}

void multiply_packed(const Operand& a, const PackedForm& b, Out c, bool accumulate, Index real_rows) {
  require(a.cols() == b.k && c.rows() == a.rows() && c.cols() == b.n,
          "[gemm] ({}, {}) times packed ({}, {}) into ({}, {})", a.rows(), a.cols(), b.k, b.n, c.rows(),
          c.cols());
  if (a.rows() == 0) return;
  kernel::multiply(a, b, c, accumulate);
  count_multiply_adds(real_rows > 0 ? real_rows : a.rows(), b.n, b.k);
}

}  // namespace

void forward(const Operand& x, const PackedWeight& w, Out y, bool accumulate, Index real_rows) {
  multiply_packed(x, w.form(Use::forward, precision_of(x)), y, accumulate, real_rows);
}

void backward_input(const Operand& dy, const PackedWeight& w, Out dx, bool accumulate, Index real_rows) {
  multiply_packed(dy, w.form(Use::backward_input, precision_of(dy)), dx, accumulate, real_rows);
}

void backward_weight(const Operand& dy, const Operand& x, Out dw, bool accumulate, Index real_rows) {
  require(dy.rows() == x.rows() && dw.rows() == dy.cols() && dw.cols() == x.cols(),
          "[gemm] gradient of a weight: dy ({}, {}), x ({}, {}), dw ({}, {})", dy.rows(), dy.cols(), x.rows(),
          x.cols(), dw.rows(), dw.cols());
  require(dy.is_bfloat16() == x.is_bfloat16(), "[gemm] gradient of a weight: operands of different types");
  if (x.rows() == 0) {
    if (!accumulate) dw.setZero();
    return;
  }
  kernel::multiply(dy.transposed(), x, dw, accumulate);
  count_multiply_adds(real_rows > 0 ? real_rows : x.rows(), dw.rows(), dw.cols());
}

Index padded_rows(Index m) {
  const auto up_to = [m](Index multiple) { return (m + multiple - 1) / multiple * multiple; };
  if (m <= 64) return up_to(16);
  return m <= 128 ? up_to(32) : up_to(64);
}

}  // namespace serial

}  // namespace moelab::gemm

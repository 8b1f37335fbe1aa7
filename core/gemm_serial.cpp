#include "core/gemm_serial.hpp"

#include "core/error.hpp"
#include "core/gemm_count.hpp"
#include "core/gemm_kernel.hpp"
#include "core/module.hpp"

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

// Calls f(first of `out`, operand (rows of `out`, in)) for what lies together of a weight.
template <class F>
void for_each_plain(const PackedWeight& w, Precision precision, const F& f) {
  if (precision == Precision::bfloat16) {
    f(Index{0}, Operand(w.plain_bfloat16(), w.out(), w.in(), w.in()));
    return;
  }
  Index first = 0;
  for (const Parameter* part : w.parts()) {
    f(first, Operand(part->value()));
    first += part->rows();
  }
}

}  // namespace

void forward(const Operand& x, const PackedWeight& w, Out y, bool accumulate, Index real_rows) {
  multiply_packed(x, w.form(Use::forward, precision_of(x)), y, accumulate, real_rows);
}

void backward_input(const Operand& dy, const PackedWeight& w, Out dx, bool accumulate, Index real_rows) {
  multiply_packed(dy, w.form(Use::backward_input, precision_of(dy)), dx, accumulate, real_rows);
}

void forward_plain(const Operand& x, const PackedWeight& w, Out y, Index real_rows) {
  require(x.cols() == w.in() && y.rows() == x.rows() && y.cols() == w.out(),
          "[gemm] ({}, {}) times ({}, {}) transposed into ({}, {})", x.rows(), x.cols(), w.out(), w.in(),
          y.rows(), y.cols());
  if (x.rows() == 0) return;
  for_each_plain(w, precision_of(x), [&](Index first, const Operand& part) {
    kernel::multiply(x, part.transposed(), y.middleCols(first, part.rows()), false);
  });
  count_multiply_adds(real_rows > 0 ? real_rows : x.rows(), w.out(), w.in());
}

void backward_input_plain(const Operand& dy, const PackedWeight& w, Out dx, Index real_rows) {
  require(dy.cols() == w.out() && dx.rows() == dy.rows() && dx.cols() == w.in(),
          "[gemm] ({}, {}) times ({}, {}) into ({}, {})", dy.rows(), dy.cols(), w.out(), w.in(), dx.rows(),
          dx.cols());
  if (dy.rows() == 0) return;
  for_each_plain(w, precision_of(dy), [&](Index first, const Operand& part) {
    kernel::multiply(dy.middle_cols(first, part.rows()), part, dx, first > 0);
  });
  count_multiply_adds(real_rows > 0 ? real_rows : dy.rows(), w.out(), w.in());
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

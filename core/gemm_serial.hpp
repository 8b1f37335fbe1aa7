// Products of one block of rows, on the calling thread alone: for use inside of parallel tasks that gather a
// block, keep it in cache and multiply it several times. Operands are given in the type that the product
// works in, so that a task converts while it gathers.
#pragma once

#include "core/bfloat16.hpp"
#include "core/gemm_packed.hpp"

namespace moelab::gemm {

// Whether operands of that precision are Bfloat16 here; else they are Scalar, and bfloat16 was asked for
// where it is not native.
bool uses_bfloat16(Precision precision);

// A matrix operand that is not owned: Scalar or Bfloat16, row-major with `stride` values from row to row.
class Operand {
 public:
  Operand(const Scalar* data, Index rows, Index cols, Index stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {}
  Operand(const Bfloat16* data, Index rows, Index cols, Index stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride), bfloat16_(true) {}
  // A Scalar matrix or a block of one.
  explicit Operand(In m) : Operand(m.data(), m.rows(), m.cols(), m.outerStride()) {}

  // The transpose, stored as this operand is.
  Operand transposed() const {
    Operand t = *this;
    t.rows_ = cols_;
    t.cols_ = rows_;
    t.is_transposed_ = !is_transposed_;
    return t;
  }

  // A block of columns. Of operands that are not transposed.
  Operand middle_cols(Index begin, Index count) const;

  const void* data() const { return data_; }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index stride() const { return stride_; }
  bool is_bfloat16() const { return bfloat16_; }
  bool is_transposed() const { return is_transposed_; }

 private:
  const void* data_;
  Index rows_, cols_, stride_;
  bool bfloat16_ = false;
  bool is_transposed_ = false;
};

namespace serial {

// y (m, out) = x (m, in) w^T; the precision of the product is the type of x. Every distinct m makes a program
// of its own on first use (about a millisecond), so blocks are padded to a few heights with padded_rows().
// Only `real_rows` of the m rows (0: all) go into multiply_adds().
void forward(const Operand& x, const PackedWeight& w, Out y, bool accumulate = false, Index real_rows = 0);
// dx (m, in) = dy (m, out) w
void backward_input(const Operand& dy, const PackedWeight& w, Out dx, bool accumulate = false,
                    Index real_rows = 0);
// The same from the weight as it lies, which is faster where a weight meets few rows between two changes: a
// packed form costs as much as some hundred rows gain from it.
void forward_plain(const Operand& x, const PackedWeight& w, Out y, Index real_rows = 0);
void backward_input_plain(const Operand& dy, const PackedWeight& w, Out dx, Index real_rows = 0);
// dw (out, in) = dy^T x with dy (m, out), x (m, in) of one type; rows beyond real_rows are zero in both. In
// bfloat16 it is faster when dy is stored transposed: Operand(dy_t, out, m, stride).transposed().
void backward_weight(const Operand& dy, const Operand& x, Out dw, bool accumulate = false,
                     Index real_rows = 0);

// m rounded up to one of few block heights: the next of 16, 32, 48, 64, 96, 128, then multiples of 64.
Index padded_rows(Index m);

}  // namespace serial

}  // namespace moelab::gemm

// Rows in the type that products work in, Scalar or Bfloat16, converted as they are written.
#pragma once

#include "core/gemm_serial.hpp"
#include "core/prefetch.hpp"
#include "core/tensor.hpp"

#include <cstddef>
#include <memory>

namespace moelab::moe {

class OperandRows {
 public:
  OperandRows() = default;
  // Uninitialised, 64-byte aligned.
  OperandRows(Index rows, Index cols, gemm::Precision precision);
  // All rows of x: converted, or, where products work in Scalar, x itself, which must outlive this.
  static OperandRows of(ConstMatrixView x, gemm::Precision precision);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  void set_row(Index row, const Scalar* values);
  // The same row of another matrix of the same width and type.
  void copy_row(Index row, const OperandRows& from, Index from_row);
  void prefetch_row(Index row) const { prefetch(row_data(row), row_bytes()); }
  void set_rows_zero(Index first, Index count);
  gemm::Operand operand(Index first, Index count) const;

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::size_t row_bytes() const;
  std::byte* row_data(Index row) { return data_.get() + row_bytes() * static_cast<std::size_t>(row); }
  const std::byte* row_data(Index row) const {
    return (view_ != nullptr ? view_ : data_.get()) + row_bytes() * static_cast<std::size_t>(row);
  }

  Index rows_ = 0, cols_ = 0;
  bool is_bfloat16_ = false;
  std::unique_ptr<std::byte[], Free> data_;
  const std::byte* view_ = nullptr;  // of rows that are not owned
};

}  // namespace moelab::moe

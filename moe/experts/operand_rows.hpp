// Rows in the type that products work in, Scalar or Bfloat16, converted as they are written.
#pragma once

#include "core/gemm_serial.hpp"
#include "core/tensor.hpp"

#include <cstddef>
#include <memory>

namespace moelab::moe {

class OperandRows {
 public:
  OperandRows() = default;
  // Uninitialised, 64-byte aligned.
  OperandRows(Index rows, Index cols, gemm::Precision precision);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  void set_row(Index row, const Scalar* values);
  void set_rows_zero(Index first, Index count);
  gemm::Operand operand(Index first, Index count) const;

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::size_t row_bytes() const;

  Index rows_ = 0, cols_ = 0;
  bool is_bfloat16_ = false;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace moelab::moe

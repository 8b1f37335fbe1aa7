#include "moe/experts/operand_rows.hpp"

#include <cstring>
#include <new>

namespace moelab::moe {

namespace {
constexpr std::align_val_t kAlignment{64};
}

void OperandRows::Free::operator()(std::byte* data) const { ::operator delete(data, kAlignment); }

OperandRows::OperandRows(Index rows, Index cols, gemm::Precision precision)
    : rows_(rows), cols_(cols), is_bfloat16_(gemm::uses_bfloat16(precision)) {
  const std::size_t bytes = row_bytes() * static_cast<std::size_t>(rows);
  data_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
}

std::size_t OperandRows::row_bytes() const {
  return static_cast<std::size_t>(cols_) * (is_bfloat16_ ? sizeof(Bfloat16) : sizeof(Scalar));
}

void OperandRows::set_row(Index row, const Scalar* values) {
  std::byte* to = data_.get() + row_bytes() * static_cast<std::size_t>(row);
  if (is_bfloat16_) {
    to_bfloat16(values, reinterpret_cast<Bfloat16*>(to), cols_);
  } else {
    std::memcpy(to, values, row_bytes());
  }
}

void OperandRows::set_rows_zero(Index first, Index count) {
  std::memset(data_.get() + row_bytes() * static_cast<std::size_t>(first), 0,
              row_bytes() * static_cast<std::size_t>(count));
}

gemm::Operand OperandRows::operand(Index first, Index count) const {
  const std::byte* from = data_.get() + row_bytes() * static_cast<std::size_t>(first);
  if (is_bfloat16_) return {reinterpret_cast<const Bfloat16*>(from), count, cols_, cols_};
  return {reinterpret_cast<const Scalar*>(from), count, cols_, cols_};
}

}  // namespace moelab::moe

#include "moe/operand_rows.hpp"

#include "core/parallel.hpp"

#include <cstring>
#include <new>

namespace moelab::moe {

namespace {
constexpr std::align_val_t kAlignment{64};
constexpr Index kRowBlock = 64;
}  // namespace

void OperandRows::Free::operator()(std::byte* data) const { ::operator delete(data, kAlignment); }

OperandRows::OperandRows(Index rows, Index cols, gemm::Precision precision)
    : rows_(rows), cols_(cols), is_bfloat16_(gemm::uses_bfloat16(precision)) {
  const std::size_t bytes = row_bytes() * static_cast<std::size_t>(rows);
  data_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
}

OperandRows OperandRows::of(ConstMatrixView x, gemm::Precision precision) {
  if (gemm::uses_bfloat16(precision)) {
    OperandRows rows(x.rows(), x.cols(), precision);
    parallel::for_blocks(x.rows(), kRowBlock, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) rows.set_row(r, x.data() + r * x.cols());
    });
    return rows;
  }
  OperandRows rows;
  rows.rows_ = x.rows();
  rows.cols_ = x.cols();
  rows.view_ = reinterpret_cast<const std::byte*>(x.data());
  return rows;
}

std::size_t OperandRows::row_bytes() const {
  return static_cast<std::size_t>(cols_) * (is_bfloat16_ ? sizeof(Bfloat16) : sizeof(Scalar));
}

void OperandRows::set_row(Index row, const Scalar* values) {
  if (is_bfloat16_) {
    to_bfloat16(values, reinterpret_cast<Bfloat16*>(row_data(row)), cols_);
  } else {
    std::memcpy(row_data(row), values, row_bytes());
  }
}

void OperandRows::copy_row(Index row, const OperandRows& from, Index from_row) {
  std::memcpy(row_data(row), from.row_data(from_row), row_bytes());
}

void OperandRows::set_rows_zero(Index first, Index count) {
  std::memset(row_data(first), 0, row_bytes() * static_cast<std::size_t>(count));
}

gemm::Operand OperandRows::operand(Index first, Index count) const {
  const std::byte* from = row_data(first);
  if (is_bfloat16_) return {reinterpret_cast<const Bfloat16*>(from), count, cols_, cols_};
  return {reinterpret_cast<const Scalar*>(from), count, cols_, cols_};
}

}  // namespace moelab::moe

#include "core/gemm.hpp"

#include "core/error.hpp"
#include "core/gemm_count.hpp"
#include "core/gemm_kernel.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <functional>

namespace moelab::gemm {

namespace {

std::atomic<std::uint64_t> multiply_adds_done{0};

// Products below this many multiply-adds are not worth a second task.
constexpr Index kSerialMultiplyAdds = Index{1} << 20;

// Height of the row blocks that a product of m rows is cut into; depends on the shape alone.
Index row_block(Index m, Index multiply_adds_per_row) {
  if (m * multiply_adds_per_row <= kSerialMultiplyAdds) return std::max<Index>(m, 1);
  if (m >= 1024) return 128;
  return m >= 512 ? 64 : 32;
}

// Memory of this thread for one block of converted operands, and for one whole operand that a loop shares.
thread_local AlignedBuffer block_buffer;
thread_local AlignedBuffer shared_buffer;

Bfloat16* reserve_bfloat16(AlignedBuffer& buffer, Index size) {
  return static_cast<Bfloat16*>(buffer.reserve(static_cast<std::size_t>(size) * sizeof(Bfloat16)));
}

void convert_rows(In m, Bfloat16* to) {
  for (Index i = 0; i < m.rows(); ++i)
    to_bfloat16(m.data() + i * m.outerStride(), to + i * m.cols(), m.cols());
}

// The block in the type of the product. Valid until this thread's next call.
Operand block_operand(In block, bool as_bfloat16) {
  if (!as_bfloat16) return Operand(block);
  Bfloat16* converted = reserve_bfloat16(block_buffer, block.size());
  convert_rows(block, converted);
  return {converted, block.rows(), block.cols(), block.cols()};
}

// c (m, n) = a (m, k) b (k, n) over blocks of rows.
template <class B>
void multiply_rows(In a, const B& b, Index k, Index n, bool as_bfloat16, Out c, bool accumulate) {
  require(a.cols() == k && c.rows() == a.rows() && c.cols() == n,
          "[gemm] ({}, {}) times ({}, {}) into ({}, {})", a.rows(), a.cols(), k, n, c.rows(), c.cols());
  parallel::for_blocks(a.rows(), row_block(a.rows(), k * n), [&](Index begin, Index end) {
    const Operand block = block_operand(a.middleRows(begin, end - begin), as_bfloat16);
    kernel::multiply(block, b, c.middleRows(begin, end - begin), accumulate);
  });
  count_multiply_adds(a.rows(), n, k);
}

void multiply_packed(In a, const PackedForm& b, Out c, bool accumulate) {
  multiply_rows(a, b, b.k, b.n, b.is_bfloat16, c, accumulate);
}

// b in Scalar, not packed. In bfloat16 it is packed for this one product.
void multiply_plain(In a, const Operand& b, Out c, Precision precision, bool accumulate) {
  if (!uses_bfloat16(precision)) {
    multiply_rows(a, b, b.rows(), b.cols(), false, c, accumulate);
    return;
  }
  PackedForm form;
  form.k = b.rows();
  form.n = b.cols();
  form.is_bfloat16 = true;
  kernel::pack(b, form);
  multiply_packed(a, form, c, accumulate);
}

// dw = dy^T x, cut into tiles of dw, so that no sum is split.
void multiply_transposed(In dy, const Operand& x, bool as_bfloat16, Out dw, bool accumulate) {
  const Index n = dw.rows();
  const Index k = dw.cols();
  const bool is_small = n * k * dy.rows() <= kSerialMultiplyAdds;
  const Index tile_rows = is_small ? n : (n >= 1024 ? 128 : 64);
  const Index row_tiles = (n + tile_rows - 1) / tile_rows;
  const Index tile_cols = is_small || row_tiles >= 8 ? k : std::min<Index>(k, 256);
  const Index col_tiles = (k + tile_cols - 1) / tile_cols;
  parallel::for_each(row_tiles * col_tiles, [&](Index tile) {
    const Index row = tile / col_tiles * tile_rows;
    const Index col = tile % col_tiles * tile_cols;
    const Index rows = std::min(tile_rows, n - row);
    const Index cols = std::min(tile_cols, k - col);
    const Operand left = block_operand(dy.middleCols(row, rows), as_bfloat16);
    kernel::multiply(left.transposed(), x.middle_cols(col, cols), dw.block(row, col, rows, cols), accumulate);
  });
}

// A product that is written over one of its factors reads what it has just written.
void require_apart(In factor, const Eigen::Ref<Matrix>& result) {
  if (factor.size() == 0 || result.size() == 0) return;
  const Scalar* factor_end = factor.data() + (factor.rows() - 1) * factor.outerStride() + factor.cols();
  const Scalar* result_end = result.data() + (result.rows() - 1) * result.outerStride() + result.cols();
  const std::less<const Scalar*> before;
  require(!before(factor.data(), result_end) || !before(result.data(), factor_end),
          "[gemm] the result of ({}, {}) lies over a factor of ({}, {})", result.rows(), result.cols(),
          factor.rows(), factor.cols());
}

}  // namespace

void count_multiply_adds(Index m, Index n, Index k) {
  multiply_adds_done.fetch_add(static_cast<std::uint64_t>(m * n * k), std::memory_order_relaxed);
}

void forward(In x, In w, Out y, Precision precision, bool accumulate) {
  require_apart(x, y);
  require_apart(w, y);
  multiply_plain(x, Operand(w).transposed(), y, precision, accumulate);
}

void backward_input(In dy, In w, Out dx, Precision precision, bool accumulate) {
  require_apart(dy, dx);
  require_apart(w, dx);
  multiply_plain(dy, Operand(w), dx, precision, accumulate);
}

void forward(In x, const PackedWeight& w, Out y, Precision precision, bool accumulate) {
  require_apart(x, y);
  multiply_packed(x, w.form(Use::forward, precision), y, accumulate);
}

void backward_input(In dy, const PackedWeight& w, Out dx, Precision precision, bool accumulate) {
  require_apart(dy, dx);
  multiply_packed(dy, w.form(Use::backward_input, precision), dx, accumulate);
}

void backward_weight(In dy, In x, Out dw, Precision precision, bool accumulate) {
  require(dy.rows() == x.rows() && dw.rows() == dy.cols() && dw.cols() == x.cols(),
          "[gemm] gradient of a weight: dy ({}, {}), x ({}, {}), dw ({}, {})", dy.rows(), dy.cols(), x.rows(),
          x.cols(), dw.rows(), dw.cols());
  require_apart(dy, dw);
  require_apart(x, dw);
  if (x.rows() == 0) {
    if (!accumulate) dw.setZero();
    return;
  }
  if (uses_bfloat16(precision)) {
    Bfloat16* converted = reserve_bfloat16(shared_buffer, x.size());
    parallel::for_blocks(x.rows(), 128, [&](Index begin, Index end) {
      convert_rows(x.middleRows(begin, end - begin), converted + begin * x.cols());
    });
    multiply_transposed(dy, Operand(converted, x.rows(), x.cols(), x.cols()), true, dw, accumulate);
  } else {
    multiply_transposed(dy, Operand(x), false, dw, accumulate);
  }
  count_multiply_adds(x.rows(), dw.rows(), dw.cols());
}

std::uint64_t multiply_adds() { return multiply_adds_done.load(std::memory_order_relaxed); }

std::string backend(Precision precision) { return kernel::name(precision); }

bool bfloat16_is_native() { return kernel::bfloat16_is_native(); }

}  // namespace moelab::gemm

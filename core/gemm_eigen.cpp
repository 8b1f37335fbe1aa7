// Matrix products through Eigen: in float64, and in float32 where oneDNN is absent.
#include "core/gemm_kernel.hpp"

#ifndef MOELAB_GEMM_ONEDNN

#include <fmt/format.h>

namespace moelab::gemm::kernel {

namespace {

using Strided = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

// The operand as it is stored.
Strided stored(const Operand& operand) {
  const Index rows = operand.is_transposed() ? operand.cols() : operand.rows();
  const Index cols = operand.is_transposed() ? operand.rows() : operand.cols();
  return {static_cast<const Scalar*>(operand.data()), rows, cols, Eigen::OuterStride<>(operand.stride())};
}

template <class A, class B>
void product(const A& a, const B& b, Out c, bool accumulate) {
  if (accumulate) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

}  // namespace

void multiply(const Operand& a, const Operand& b, Out c, bool accumulate) {
  const Strided left = stored(a);
  const Strided right = stored(b);
  if (a.is_transposed() && b.is_transposed()) {
    product(left.transpose(), right.transpose(), c, accumulate);
  } else if (a.is_transposed()) {
    product(left.transpose(), right, c, accumulate);
  } else if (b.is_transposed()) {
    product(left, right.transpose(), c, accumulate);
  } else {
    product(left, right, c, accumulate);
  }
}

void multiply(const Operand& a, const PackedForm& b, Out c, bool accumulate) {
  multiply(a, *static_cast<const Operand*>(b.layout.get()), c, accumulate);
}

// Eigen packs inside of a product; what is kept is a copy, since stacked weights lie apart in memory.
void pack(const Operand& b, PackedForm& form) {
  auto* data =
      static_cast<Scalar*>(form.data.reserve(static_cast<std::size_t>(form.k * form.n) * sizeof(Scalar)));
  const Strided source = stored(b);
  MatrixView(data, source.rows(), source.cols()) = source;
  const Operand copy(data, source.rows(), source.cols(), source.cols());
  form.layout = std::make_shared<const Operand>(b.is_transposed() ? copy.transposed() : copy);
}

std::string name(Precision /*precision*/) {
  return fmt::format("Eigen {}.{}.{} {}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION,
                     Eigen::SimdInstructionSetsInUse());
}

bool bfloat16_is_native() { return false; }

}  // namespace moelab::gemm::kernel

#endif

// What a backend of matrix products gives to core/gemm: serial products of operands. Internal to core.
#pragma once

#include "core/gemm_serial.hpp"

#include <memory>
#include <string>

#if defined(MOELAB_HAS_ONEDNN) && !defined(MOELAB_FLOAT64)
#define MOELAB_GEMM_ONEDNN
#endif

namespace moelab::gemm {

// 64-byte aligned memory that only grows.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();
  // At least `bytes` bytes; what was there before is lost when it grows.
  void* reserve(std::size_t bytes);
  const void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// The operand b (k, n) of a product.
struct PackedForm {
  Index k = 0;
  Index n = 0;
  bool is_bfloat16 = false;
  AlignedBuffer data;
  std::shared_ptr<const void> layout;  // of the backend
};

namespace kernel {

// c (m, n) = a (m, k) b (k, n), or added to it. m, n, k > 0, operands of one type.
void multiply(const Operand& a, const Operand& b, Out c, bool accumulate);
void multiply(const Operand& a, const PackedForm& b, Out c, bool accumulate);

// Fills form.data from b (k, n), of Scalar or of the form's type; k, n and is_bfloat16 are set. Called again
// with new values of the same shape.
void pack(const Operand& b, PackedForm& form);

std::string name(Precision precision);
bool bfloat16_is_native();

}  // namespace kernel

}  // namespace moelab::gemm

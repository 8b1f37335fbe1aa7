#include "core/bfloat16.hpp"

#include <bit>

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace moelab {

namespace {

std::uint16_t rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t to_even = bits + 0x7fffU + ((bits >> 16) & 1U);
  const std::uint32_t quiet_nan = bits | 0x400000U;
  return static_cast<std::uint16_t>((is_nan ? quiet_nan : to_even) >> 16);
}

}  // namespace

void to_bfloat16(const Scalar* from, Bfloat16* to, Index n) {
  Index i = 0;
#if defined(__AVX512BF16__) && !defined(MOELAB_FLOAT64)
  for (; i + 32 <= n; i += 32) {
    const __m512bh packed = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
    _mm512_storeu_si512(to + i, reinterpret_cast<const __m512i&>(packed));
  }
#endif
  for (; i < n; ++i) to[i].bits = rounded(static_cast<float>(from[i]));
}

}  // namespace moelab

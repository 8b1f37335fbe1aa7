// Scalar functions without branches, so that loops over them vectorise. In float64 they are those of <cmath>.
// The result depends on the argument alone, not on its place in a vector.
#pragma once

#include "core/tensor.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace moelab::math {

inline double exp(double x) { return std::exp(x); }

// Error below 2 ulp. e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, and a polynomial for e^r (Cody
// and Waite's split of ln 2). Overflows to inf, underflows to 0, keeps NaN.
inline float exp(float x) {
  x = x > 89.0F ? 89.0F : x;
  x = x < -104.0F ? -104.0F : x;
  constexpr float kRound = 0x1.8p23F;  // adding it leaves the nearest integer in the low bits
  const float shifted = x * 0x1.715476p0F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0x1.62e400p-1F) - n * 0x1.7f7d1cp-20F;
  float p = 0x1.a01a02p-13F;  // Taylor coefficients 1/7!, ..., 1/2!
  p = p * r + 0x1.6c16c2p-10F;
  p = p * r + 0x1.111112p-7F;
  p = p * r + 0x1.555556p-5F;
  p = p * r + 0x1.555556p-3F;
  p = p * r + 0.5F;
  p = (p * r) * r + r;
  p += 1.0F;
  // 2^n in two factors, because n reaches beyond the exponents of one float.
  const std::int32_t k = std::bit_cast<std::int32_t>(shifted) - 0x4b400000;
  const std::int32_t half = k >> 1;
  const auto power = [](std::int32_t e) { return std::bit_cast<float>((e + 127) << 23); };
  return p * power(half) * power(k - half);
}

inline Scalar sigmoid(Scalar x) { return 1 / (1 + exp(-x)); }

}  // namespace moelab::math

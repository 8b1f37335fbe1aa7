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

inline double erf(double x) { return std::erf(x); }

// Error below 4e-7: x P(x^2) / Q(x^2), fitted for the least relative error on [-4, 4], where erf reaches 1 in
// float32.
inline float erf(float x) {
  x = x > 4.0F ? 4.0F : x;
  x = x < -4.0F ? -4.0F : x;
  const float z = x * x;
  float p = 1.9867814e-6F;
  p = p * z + 2.8456635e-4F;
  p = p * z + 3.8833571e-3F;
  p = p * z + 5.3101782e-2F;
  p = p * z + 1.9354535e-1F;
  p = p * z + 1.1283791F;
  float q = 3.742019e-5F;
  q = q * z + 1.1855747e-3F;
  q = q * z + 1.5207275e-2F;
  q = q * z + 1.1535012e-1F;
  q = q * z + 5.0485766e-1F;
  q = q * z + 1.0F;
  float y = x * p / q;
  y = y > 1.0F ? 1.0F : y;
  return y < -1.0F ? -1.0F : y;
}

inline Scalar sigmoid(Scalar x) { return 1 / (1 + exp(-x)); }

// Calls f(i) for i in [0, n) in a loop that compilers turn into vector instructions. f reads and writes entry
// i of its arrays only; an output may be the same array as an input.
template <class F>
inline void for_entries(Index n, F f) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (Index i = 0; i < n; ++i) f(i);
}

// Sums and maxima run in this many interleaved lanes, which vectorise.
inline constexpr Index kLanes = 32;

// join(join(lane 0, lane 16), ...), in an order that halves the number of lanes each time.
template <class Join>
inline Scalar join_lanes(Scalar* lanes, Join join) {
  static_assert(kLanes == 32);
  for (Index l = 0; l < 16; ++l) lanes[l] = join(lanes[l], lanes[l + 16]);
  for (Index l = 0; l < 8; ++l) lanes[l] = join(lanes[l], lanes[l + 8]);
  for (Index l = 0; l < 4; ++l) lanes[l] = join(lanes[l], lanes[l + 4]);
  return join(join(lanes[0], lanes[2]), join(lanes[1], lanes[3]));
}

// f(0) + ... + f(n - 1), in an order that depends on n alone. f may also write entry i of an array.
template <class F>
inline Scalar sum_entries(Index n, F f) {
  Scalar lanes[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (Index l = 0; l < kLanes; ++l) lanes[l] += f(i + l);
  }
  for (Index l = 0; i < n; ++i, ++l) lanes[l] += f(i);
  return join_lanes(lanes, [](Scalar a, Scalar b) { return a + b; });
}

// The largest of n > 0 entries.
inline Scalar largest_entry(const Scalar* x, Index n) {
  const auto larger = [](Scalar a, Scalar b) { return a > b ? a : b; };
  Scalar lanes[kLanes];
  for (Scalar& lane : lanes) lane = x[0];
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (Index l = 0; l < kLanes; ++l) lanes[l] = larger(x[i + l], lanes[l]);
  }
  for (Index l = 0; i < n; ++i, ++l) lanes[l] = larger(x[i], lanes[l]);
  return join_lanes(lanes, larger);
}

}  // namespace moelab::math

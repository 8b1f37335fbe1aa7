#include "experiments/bench/peak.hpp"

#include "core/parallel.hpp"
#include "experiments/bench/timing.hpp"

#include <limits>
#include <vector>

namespace moelab::bench {

namespace {

constexpr int kLanes = 16;
constexpr int kChains = 12;  // independent sums: enough to hide the latency of an FMA on two ports
constexpr int kSteps = 1 << 20;

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));

float fma_loop(float start) {
  Vector sums[kChains];
  for (Vector& sum : sums) sum = Vector{} + start;
  const Vector factor = Vector{} + (1 - start);
  const Vector term = Vector{} + start;
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (Vector& sum : sums) sum = sum * factor + term;
  }
  float total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

}  // namespace

double fma_peak_gflops(int threads) {
#ifndef __FMA__
  return std::numeric_limits<double>::quiet_NaN();  // the loop would be another one than that of the products
#endif
  std::vector<float> results(static_cast<std::size_t>(threads));
  const Timing timing = measure({.warmup = 2, .least = 5, .seconds = 0.2}, [&] {
    parallel::for_each(threads, [&](Index i) {
      results[static_cast<std::size_t>(i)] = fma_loop(1e-6F * static_cast<float>(i + 1));
    });
  });
  const double flops = 2.0 * kLanes * kChains * static_cast<double>(kSteps) * threads;
  return flops / timing.fastest / 1e9;
}

}  // namespace moelab::bench

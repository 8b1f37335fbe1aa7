// What the machine can do at most, measured.
#pragma once

namespace moelab::bench {

// GFLOP/s of float32 multiply-adds that stay in vector registers, on `threads` threads at once.
double fma_peak_gflops(int threads);

}  // namespace moelab::bench

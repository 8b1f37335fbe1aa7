// What every benchmark says of a piece of work: its speed, and that of its products alone.
#pragma once

#include "core/gemm.hpp"
#include "experiments/bench/table.hpp"
#include "experiments/bench/timing.hpp"

#include <vector>

namespace moelab::bench {

struct Speed {
  Timing time;
  double flops = 0;   // of the products that the work executes
  double tokens = 0;  // that it works on
  Timing products_time;
  double products_flops = 0;
  double peak_gflops = 0;  // float32 FMA peak of the threads that were used; NaN: not known
  gemm::Precision precision = gemm::Precision::float32;
};

// ms, spread, tokens_per_second, gflops, products_gflops, share, peak.
std::vector<Column> speed_columns();
// Their values. The peak is of float32, so there is no share of it in bfloat16.
std::vector<double> speed_values(const Speed& speed);

}  // namespace moelab::bench

#include "experiments/bench/speed.hpp"

#include <limits>

namespace moelab::bench {

std::vector<Column> speed_columns() {
  return {{"ms", "ms", "median time", 2},
          {"spread", "1", "middle half of the times over the median", 2},
          {"tokens_per_second", "tokens/s", "tokens over the median time", 0},
          {"gflops", "GFLOP/s", "FLOPs of the products over the median time of the whole work", 0},
          {"products_gflops", "GFLOP/s", "speed of the FFN's products alone, on the same blocks", 0},
          {"share", "1", "speed over that of the products alone", 2},
          {"peak", "1", "speed over the float32 FMA peak of the threads", 2}};
}

std::vector<double> speed_values(const Speed& speed) {
  const double gflops = speed.flops / speed.time.median / 1e9;
  const double products = speed.products_flops / speed.products_time.median / 1e9;
  const double peak = speed.precision == gemm::Precision::float32 ? gflops / speed.peak_gflops
                                                                  : std::numeric_limits<double>::quiet_NaN();
  return {speed.time.median * 1e3,
          speed.time.spread,
          speed.tokens / speed.time.median,
          gflops,
          products,
          gflops / products,
          peak};
}

}  // namespace moelab::bench

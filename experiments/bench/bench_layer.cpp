#include "core/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/peak.hpp"
#include "experiments/bench/peer.hpp"
#include "experiments/bench/products.hpp"

#include <limits>

#include <fmt/format.h>

namespace moelab::bench {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// What is measured of one layer, its products and its dense twin, in turn.
struct Measured {
  Timing layer, products, dense;
};

Table layer_table() {
  Table table;
  table.name = "layer";
  table.title =
      "One MoE layer. share: of the speed of its products alone; dense: its time over that of a dense FFN of "
      "equal active FLOPs; peak: share of the float32 FMA peak.";
  table.labels = {"shape", "precision", "pass"};
  table.columns = {{"ms", "ms", "median time of the layer", 2},
                   {"spread", "1", "middle half of the times over the median", 2},
                   {"gflops", "GFLOP/s", "speed of the expert products in the layer", 0},
                   {"products_gflops", "GFLOP/s", "speed of the products alone", 0},
                   {"share", "1", "speed over that of the products alone", 2},
                   {"dense", "1", "time over that of the dense FFN of equal active FLOPs", 2},
                   {"peak", "1", "speed over the float32 FMA peak of all threads", 2},
                   {"peer_gflops", "GFLOP/s", "speed of PyTorch", 0},
                   {"peer", "1", "speed over that of PyTorch", 2}};
  return table;
}

}  // namespace

const char* name_of(gemm::Precision precision) {
  return precision == gemm::Precision::float32 ? "float32" : "bfloat16";
}

std::vector<LayerShape> layer_shapes() {
  return {{2048, 512, 1024, 8, 2}, {2048, 256, 512, 16, 2}, {4096, 256, 128, 64, 8}, {512, 1024, 3584, 8, 2}};
}

Report bench_layer(const Options& options, const std::vector<LayerShape>& shapes) {
  Report report = new_report();
  const double peak = fma_peak_gflops(parallel::threads());
  report.facts.emplace_back("fma_peak_gflops", fmt::format("{:.0f}", peak));
  const PeerLayers peer = run_layer_peer(options);

  Table table = layer_table();
  for (const LayerShape& shape : shapes) {
    for (const gemm::Precision precision : options.precisions) {
      LayerCase layer(shape, precision);
      const auto dense = LayerCase::dense_twin(shape, precision);
      LayerProducts products(shape, precision, layer.rows_of_experts());
      const auto add = [&](const char* pass, double flops, const std::vector<Timing>& times) {
        const double speed = flops / times[0].median / 1e9;
        const double alone = flops / times[1].median / 1e9;
        const double peers = peer.gflops(shape, precision, pass);
        table.add({{shape.name(), name_of(precision), pass},
                   {times[0].median * 1e3, times[0].spread, speed, alone, speed / alone,
                    times[0].median / times[2].median,
                    precision == gemm::Precision::float32 ? speed / peak : kNone, peers, speed / peers}});
      };
      add("forward", shape.flops(),
          measure_in_turn(options.repeats, {[&] { layer.forward(); }, [&] { products.forward(); },
                                            [&] { dense->forward(); }}));
      add("both", 3 * shape.flops(),
          measure_in_turn(options.repeats,
                          {[&] { layer.forward_backward(); }, [&] { products.forward_backward(); },
                           [&] { dense->forward_backward(); }}));
    }
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace moelab::bench

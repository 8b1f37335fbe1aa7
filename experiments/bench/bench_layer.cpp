#include "core/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/peak.hpp"
#include "experiments/bench/peer.hpp"
#include "experiments/bench/products.hpp"
#include "experiments/bench/speed.hpp"

#include <fmt/format.h>

namespace moelab::bench {

namespace {

Table layer_table() {
  Table table;
  table.name = "layer";
  table.title =
      "One MoE layer. share: of the speed of its products alone; dense: its time over that of a dense FFN of "
      "equal active FLOPs; peak: share of the float32 FMA peak.";
  table.labels = {"shape", "precision", "pass"};
  table.columns = speed_columns();
  table.columns.push_back({"dense", "1", "time over that of the dense FFN of equal active FLOPs", 2});
  table.columns.push_back({"peer_gflops", "GFLOP/s", "speed of PyTorch in its fastest run", 0});
  table.columns.push_back({"peer", "1", "speed over that of PyTorch, both in their fastest run", 2});
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
  // The peer runs before and after, so that a machine that drifts does so for both.
  PeerLayers peer;
  run_layer_peer(options, peer);
  struct Done {
    LayerShape shape;
    gemm::Precision precision;
    const char* pass;
    double flops;
    std::vector<Timing> times;  // of the layer, its products and its dense twin, measured in turn
  };
  std::vector<Done> done;
  for (const LayerShape& shape : shapes) {
    for (const gemm::Precision precision : options.precisions) {
      LayerCase layer(shape, precision);
      const auto dense = LayerCase::dense_twin(shape, precision);
      LayerProducts products(shape, precision, layer.rows_of_experts());
      done.push_back({shape, precision, "forward", shape.flops(),
                      measure_in_turn(options.repeats, {[&] { layer.forward(); }, [&] { products.forward(); },
                                                        [&] { dense->forward(); }})});
      done.push_back({shape, precision, "both", 3 * shape.flops(),
                      measure_in_turn(options.repeats, {[&] { layer.forward_backward(); },
                                                        [&] { products.forward_backward(); },
                                                        [&] { dense->forward_backward(); }})});
    }
  }
  run_layer_peer(options, peer);

  Table table = layer_table();
  for (const Done& d : done) {
    std::vector<double> values = speed_values({.time = d.times[0],
                                               .flops = d.flops,
                                               .tokens = static_cast<double>(d.shape.tokens),
                                               .products_time = d.times[1],
                                               .products_flops = d.flops,
                                               .peak_gflops = peak,
                                               .precision = d.precision});
    const double peers = peer.gflops(d.shape, d.precision, d.pass);
    values.push_back(d.times[0].median / d.times[2].median);
    values.push_back(peers);
    values.push_back(d.flops / d.times[0].fastest / 1e9 / peers);
    table.add({{d.shape.name(), name_of(d.precision), d.pass}, std::move(values)});
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace moelab::bench

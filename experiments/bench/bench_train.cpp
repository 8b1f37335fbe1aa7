#include "core/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/peak.hpp"
#include "experiments/bench/peer.hpp"
#include "experiments/bench/products.hpp"
#include "experiments/bench/speed.hpp"
#include "experiments/bench/train_case.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace moelab::bench {

namespace {

// Seconds of a step in PyTorch: dense, mixture.
std::array<double, 2> run_train_peers(const Options& options, const DecoderShape& shape,
                                      gemm::Precision precision) {
  return {run_train_peer(options, shape, precision, false), run_train_peer(options, shape, precision, true)};
}

}  // namespace

Report bench_train(const Options& options, const DecoderShape& shape) {
  Report report = new_report();
  Table table;
  table.name = "train";
  table.title = fmt::format(
      "Training steps of a decoder: d_model {}, {} layers, {} heads, dense d_ff {} or {} experts of {} with "
      "top-{}, {} x {} tokens.",
      shape.d_model, shape.num_layers, shape.num_heads, shape.d_ff * shape.top_k, shape.num_experts,
      shape.d_ff, shape.top_k, shape.batch, shape.seq_len);
  table.labels = {"ffn", "precision"};
  table.columns = speed_columns();
  for (const Column& column :
       {Column{"forward_ms", "ms", "forward pass and losses", 1},
        Column{"backward_ms", "ms", "backward pass", 1},
        Column{"update_ms", "ms", "clipping and optimizer", 1},
        Column{"over_dense", "1", "time over that of the dense model", 2},
        Column{"peer_tokens_per_second", "tokens/s", "speed of PyTorch in its fastest step", 0},
        Column{"peer", "1", "speed over that of PyTorch, both in their fastest step", 2}})
    table.columns.push_back(column);
  const double peak = fma_peak_gflops(parallel::threads());
  const auto tokens = static_cast<double>(shape.batch * shape.seq_len);
  for (const gemm::Precision precision : options.precisions) {
    const LayerShape mixture_layer{shape.batch * shape.seq_len, shape.d_model, shape.d_ff, shape.num_experts,
                                   shape.top_k};
    const LayerShape dense_layer{shape.batch * shape.seq_len, shape.d_model, shape.d_ff * shape.top_k, 1, 1};
    LayerProducts mixture_products(mixture_layer, precision,
                                   LayerCase(mixture_layer, precision).rows_of_experts());
    LayerProducts dense_products(dense_layer, precision, {dense_layer.tokens});
    TrainCase dense(shape, precision, false);
    TrainCase mixture(shape, precision, true);
    // The peer runs before and after, so that a machine that drifts does so for both.
    const std::array<double, 2> peers = run_train_peers(options, shape, precision);
    const std::vector<Timing> times =
        measure_in_turn(options.repeats, {[&] { dense.step(); }, [&] { mixture.step(); },
                                          [&] { dense_products.forward_backward(); },
                                          [&] { mixture_products.forward_backward(); }});
    const std::array<double, 2> after = run_train_peers(options, shape, precision);
    for (const std::size_t is_moe : {0U, 1U}) {
      const TrainCase& model = is_moe != 0 ? mixture : dense;
      const double peer = std::min(peers[is_moe], after[is_moe]);
      std::vector<double> values = speed_values({.time = times[is_moe],
                                                 .flops = model.flops(),
                                                 .tokens = tokens,
                                                 .products_time = times[2 + is_moe],
                                                 .products_flops = 3 * mixture_layer.flops(),
                                                 .peak_gflops = peak,
                                                 .precision = precision});
      for (const Phase phase : {Phase::forward, Phase::backward, Phase::update})
        values.push_back(model.median(phase, static_cast<std::size_t>(times[is_moe].repeats)) * 1e3);
      values.push_back(times[is_moe].median / times[0].median);
      values.push_back(tokens / peer);
      values.push_back(peer / times[is_moe].fastest);
      table.add({{is_moe != 0 ? "moe" : "dense", name_of(precision)}, std::move(values)});
    }
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace moelab::bench

#include "core/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/peak.hpp"
#include "experiments/bench/products.hpp"
#include "experiments/bench/speed.hpp"

#include <chrono>
#include <memory>

#include <fmt/format.h>

namespace moelab::bench {

namespace {

// Of forward and backward.
Speed layer_speed(const LayerShape& shape, gemm::Precision precision, const Timing& time,
                  const Timing& products, double peak) {
  return {.time = time,
          .flops = 3 * shape.flops(),
          .tokens = static_cast<double>(shape.tokens),
          .products_time = products,
          .products_flops = 3 * shape.flops(),
          .peak_gflops = peak,
          .precision = precision};
}

Table expert_table(const Options& options, LayerShape shape, Index most_experts) {
  Table table;
  table.name = "experts";
  table.title =
      "More experts at the same active compute: time of forward and backward over that with the fewest.";
  table.labels = {"shape", "precision"};
  table.columns = speed_columns();
  table.columns.push_back({"over_fewest", "1", "time over that with the fewest experts", 2});
  const double peak = fma_peak_gflops(parallel::threads());
  for (const gemm::Precision precision : options.precisions) {
    std::vector<std::unique_ptr<LayerCase>> layers;
    std::vector<std::unique_ptr<LayerProducts>> products;
    std::vector<std::function<void()>> works;  // a layer and its products, by turns
    std::vector<LayerShape> shapes;
    for (Index experts = 8; experts <= most_experts; experts *= 2) {
      shape.num_experts = experts;
      shapes.push_back(shape);
      layers.push_back(std::make_unique<LayerCase>(shape, precision));
      products.push_back(std::make_unique<LayerProducts>(shape, precision, layers.back()->rows_of_experts()));
      works.emplace_back([layer = layers.back().get()] { layer->forward_backward(); });
      works.emplace_back([alone = products.back().get()] { alone->forward_backward(); });
    }
    const std::vector<Timing> times = measure_in_turn(options.repeats, works);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      std::vector<double> values =
          speed_values(layer_speed(shape, precision, times[2 * i], times[2 * i + 1], peak));
      values.push_back(times[2 * i].median / times[0].median);
      table.add({{shapes[i].name(), name_of(precision)}, std::move(values)});
    }
  }
  return table;
}

// Times of `work` with 1, 2, ... threads, in turn. A change of the threads is followed by a run that is not
// timed, since new threads make programs and memory of their own.
std::vector<Timing> measure_threads(const Repeats& repeats, int most, const std::function<void()>& work) {
  constexpr int kRunsInTurn = 3;
  std::vector<std::vector<double>> seconds(static_cast<std::size_t>(most));
  double total = 0;
  for (int i = 0; i < repeats.most && (i < repeats.least || total < repeats.seconds); ++i) {
    for (int threads = 1; threads <= most; ++threads) {
      parallel::set_threads(threads);
      const Timing timing =
          measure({.warmup = 1, .least = kRunsInTurn, .seconds = 0, .most = kRunsInTurn}, work);
      seconds[static_cast<std::size_t>(threads - 1)].push_back(timing.median);
      total += timing.median * kRunsInTurn / most;
    }
  }
  std::vector<Timing> times;
  for (std::vector<double>& of_threads : seconds) times.push_back(summarize(std::move(of_threads)));
  return times;
}

Table thread_table(const Options& options, const LayerShape& shape) {
  Table table;
  table.name = "threads";
  table.title = "More threads: speed of forward and backward over that of one thread.";
  table.labels = {"shape", "precision", "threads"};
  table.columns = speed_columns();
  table.columns.push_back({"speedup", "1", "speed over that of one thread", 2});
  const int all = parallel::threads();
  for (const gemm::Precision precision : options.precisions) {
    LayerCase layer(shape, precision);
    LayerProducts products(shape, precision, layer.rows_of_experts());
    const std::vector<Timing> times =
        measure_threads(options.repeats, all, [&] { layer.forward_backward(); });
    const std::vector<Timing> alone =
        measure_threads(options.repeats, all, [&] { products.forward_backward(); });
    for (int threads = 1; threads <= all; ++threads) {
      parallel::set_threads(threads);
      const auto i = static_cast<std::size_t>(threads - 1);
      std::vector<double> values =
          speed_values(layer_speed(shape, precision, times[i], alone[i], fma_peak_gflops(threads)));
      values.push_back(times[0].median / times[i].median);
      table.add({{shape.name(), name_of(precision), std::to_string(threads)}, std::move(values)});
    }
    parallel::set_threads(all);
  }
  return table;
}

Table block_table(const Options& options, const LayerShape& shape) {
  Table table;
  table.name = "blocks";
  table.title = "Height of a block of rows: speed of one packed product on one thread.";
  table.labels = {"product", "precision", "rows"};
  table.columns = {{"gflops", "GFLOP/s", "speed", 0}};
  for (const gemm::Precision precision : options.precisions) {
    for (const Index rows : {16, 32, 48, 64, 96, 128, 192, 256}) {
      table.add(
          {{fmt::format("n{} k{}", 2 * shape.d_ff, shape.d_model), name_of(precision), std::to_string(rows)},
           {block_gflops(rows, 2 * shape.d_ff, shape.d_model, precision)}});
    }
  }
  return table;
}

}  // namespace

Report bench_scaling(const Options& options, const LayerShape& shape, Index most_experts) {
  Report report = new_report();
  report.tables.push_back(expert_table(options, shape, most_experts));
  report.tables.push_back(thread_table(options, shape));
  report.tables.push_back(block_table(options, shape));
  return report;
}

}  // namespace moelab::bench

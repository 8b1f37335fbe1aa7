#include "core/parallel.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/products.hpp"

#include <fmt/format.h>

namespace moelab::bench {

namespace {

Table expert_table(const Options& options, LayerShape shape, Index most_experts) {
  Table table;
  table.name = "experts";
  table.title =
      "More experts at the same active compute: time of forward and backward over that with the fewest.";
  table.labels = {"shape", "precision"};
  table.columns = {{"ms", "ms", "median time of forward and backward", 2},
                   {"spread", "1", "middle half of the times over the median", 2},
                   {"gflops", "GFLOP/s", "speed of the expert products", 0},
                   {"over_fewest", "1", "time over that with the fewest experts", 2}};
  for (const gemm::Precision precision : options.precisions) {
    std::vector<LayerShape> shapes;
    for (Index experts = 8; experts <= most_experts; experts *= 2) {
      shape.num_experts = experts;
      shapes.push_back(shape);
    }
    std::vector<std::unique_ptr<LayerCase>> layers;
    std::vector<std::function<void()>> works;
    for (const LayerShape& s : shapes) {
      layers.push_back(std::make_unique<LayerCase>(s, precision));
      works.emplace_back([layer = layers.back().get()] { layer->forward_backward(); });
    }
    const std::vector<Timing> times = measure_in_turn(options.repeats, works);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      table.add({{shapes[i].name(), name_of(precision)},
                 {times[i].median * 1e3, times[i].spread, 3 * shape.flops() / times[i].median / 1e9,
                  times[i].median / times[0].median}});
    }
  }
  return table;
}

Table thread_table(const Options& options, const LayerShape& shape) {
  Table table;
  table.name = "threads";
  table.title = "More threads: speed of forward and backward over that of one thread.";
  table.labels = {"shape", "precision", "threads"};
  table.columns = {{"ms", "ms", "median time of forward and backward", 2},
                   {"spread", "1", "middle half of the times over the median", 2},
                   {"speedup", "1", "speed over that of one thread", 2}};
  const int all = parallel::threads();
  for (const gemm::Precision precision : options.precisions) {
    LayerCase layer(shape, precision);
    double one_thread = 0;
    for (int threads = 1; threads <= all; ++threads) {
      parallel::set_threads(threads);
      const Timing time = measure(options.repeats, [&] { layer.forward_backward(); });
      if (threads == 1) one_thread = time.median;
      table.add({{shape.name(), name_of(precision), std::to_string(threads)},
                 {time.median * 1e3, time.spread, one_thread / time.median}});
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

#include "experiments/bench/bench.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/output_file.hpp"

#include <filesystem>
#include <functional>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace moelab::cli {

namespace {

struct BenchOptions {
  std::string precision;  // empty: both
  std::string hdf5_file;
  bool json = false;
  int threads = 0;
  double seconds = 1;
  bench::Options bench;
  bench::LayerShape scaling{.tokens = 2048, .d_model = 256, .d_ff = 512, .num_experts = 8, .top_k = 2};
  Index most_experts = 256;
  std::vector<Index> layer_shape;  // empty: the four of bench::layer_shapes
};

std::vector<bench::LayerShape> shapes_of(const std::vector<Index>& n) {
  if (n.empty()) return bench::layer_shapes();
  if (n[4] > n[3]) throw CLI::ValidationError("--shape", fmt::format("top_k {} of {} experts", n[4], n[3]));
  return {{.tokens = n[0], .d_model = n[1], .d_ff = n[2], .num_experts = n[3], .top_k = n[4]}};
}

void run(BenchOptions& options, const std::function<bench::Report()>& measure) {
  std::filesystem::path file;  // looked at before all that is measured
  if (!options.hdf5_file.empty()) file = file_to_write(options.hdf5_file, "bench.h5");
  parallel::set_threads(options.threads);
  options.bench.repeats.seconds = options.seconds;
  if (!options.precision.empty()) {
    options.bench.precisions = {options.precision == "float32" ? gemm::Precision::float32
                                                               : gemm::Precision::bfloat16};
  }
  const bench::Report report = measure();
  fmt::print("{}{}", options.json ? to_json(report) : to_text(report), options.json ? "\n" : "");
  if (!file.empty()) hdf5::write_file(file, to_hdf5(report));
}

void add_common(CLI::App& command, BenchOptions& options) {
  command.add_option("--precision", options.precision, "float32 or bfloat16; both where not given")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  command.add_option("--threads", options.threads, "Threads; 0: all")->check(CLI::NonNegativeNumber);
  command.add_option("--seconds", options.seconds, "How long each number is measured")
      ->check(CLI::PositiveNumber);
  command.add_flag("--json", options.json, "JSON instead of a table");
  command.add_option("--hdf5", options.hdf5_file,
                     "Also write the numbers to this HDF5 file, or to bench.h5 in a folder");
}

void add_peer(CLI::App& command, BenchOptions& options) {
  command.add_option("--peer", options.bench.peer,
                     "A Python interpreter with PyTorch: runs the same work there and prints the ratios");
  command.add_option("--peer-scripts", options.bench.peer_scripts, "Folder of the scripts of the peer")
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, Context& /*context*/) {
  CLI::App* command = app.add_subcommand("bench", "Measure speed on this machine");
  command->require_subcommand(1);
  auto options = std::make_shared<BenchOptions>();
  options->bench.peer_scripts = MOELAB_PEER_SCRIPTS;

  CLI::App* layer = command->add_subcommand(
      "layer", "An MoE layer against its matrix products alone and a dense FFN of equal active FLOPs");
  add_common(*layer, *options);
  add_peer(*layer, *options);
  layer
      ->add_option("--shape", options->layer_shape,
                   "Instead of the four shapes: tokens,d_model,d_ff,experts,top_k")
      ->delimiter(',')
      ->expected(5)
      ->check(CLI::PositiveNumber);
  layer->callback([options] {
    run(*options, [&] { return bench::bench_layer(options->bench, shapes_of(options->layer_shape)); });
  });

  CLI::App* train = command->add_subcommand("train", "Training steps of a small decoder, dense and MoE");
  add_common(*train, *options);
  add_peer(*train, *options);
  train->callback([options] { run(*options, [&] { return bench::bench_train(options->bench, {}); }); });

  CLI::App* scaling = command->add_subcommand(
      "scaling", "More experts at fixed active compute, more threads, other block heights");
  add_common(*scaling, *options);
  scaling->add_option("--experts", options->most_experts, "Up to how many experts")
      ->check(CLI::Range(8, 1024))
      ->capture_default_str();
  scaling->callback([options] {
    run(*options,
        [&] { return bench::bench_scaling(options->bench, options->scaling, options->most_experts); });
  });
}

}  // namespace moelab::cli

#include "experiments/bench/bench.hpp"

#include "core/error.hpp"
#include "core/gemm.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "experiments/bench/peak.hpp"
#include "experiments/bench/peer.hpp"
#include "experiments/bench/products.hpp"
#include "experiments/bench/train_case.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/page_faults.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include <malloc.h>
#include <nlohmann/json.hpp>

using namespace moelab;
using namespace moelab::bench;

namespace {

constexpr LayerShape kSmall{.tokens = 96, .d_model = 16, .d_ff = 24, .num_experts = 4, .top_k = 2};

Options once() {
  Options options;
  options.repeats = {.warmup = 0, .least = 1, .seconds = 0, .most = 1};
  return options;
}

std::uint64_t multiply_adds_of(const std::function<void()>& work) {
  const std::uint64_t before = gemm::multiply_adds();
  work();
  return gemm::multiply_adds() - before;
}

}  // namespace

TEST_CASE("times are summarized by their quantiles", "[bench]") {
  const Timing odd = summarize({5, 1, 2, 4, 3});
  CHECK(odd.median == 3);
  CHECK(odd.fastest == 1);
  CHECK(odd.repeats == 5);
  CHECK(odd.spread == 2.0 / 3);  // quartiles 2 and 4
  CHECK(summarize({1, 2}).median == 1.5);
  CHECK_THROWS_AS(summarize({}), Error);
}

TEST_CASE("pieces of work are measured in turn, as often as asked", "[bench]") {
  std::string order;
  const std::vector<Timing> times = measure_in_turn({.warmup = 1, .least = 2, .seconds = 0, .most = 9},
                                                    {[&] { order += 'a'; }, [&] { order += 'b'; }});
  CHECK(order == "ababab");
  CHECK(times.size() == 2);
  CHECK(times[0].repeats == 2);
}

TEST_CASE("the layer, and its products alone, execute the products that are counted", "[bench]") {
  LayerCase layer(kSmall, gemm::Precision::float32);
  const std::vector<Index> rows = layer.rows_of_experts();
  CHECK(rows.size() == 4);
  CHECK(rows[0] + rows[1] + rows[2] + rows[3] == 96 * 2);

  // Per row: gate, up and down. Backward: twice that.
  const std::uint64_t expected = 96 * 2 * 3 * 16 * 24;
  CHECK(kSmall.flops() == 2.0 * static_cast<double>(expected));
  LayerProducts products(kSmall, gemm::Precision::float32, rows);
  CHECK(multiply_adds_of([&] { products.forward(); }) == expected);
  CHECK(multiply_adds_of([&] { products.forward_backward(); }) == 3 * expected);
  // The layer's router adds N * E * d, forward and twice backward.
  const std::uint64_t router = 96 * 4 * 16;
  CHECK(multiply_adds_of([&] { layer.forward(); }) == expected + router);
  CHECK(multiply_adds_of([&] { layer.forward_backward(); }) == 3 * (expected + router));

  const auto dense = LayerCase::dense_twin(kSmall, gemm::Precision::float32);
  CHECK(multiply_adds_of([&] { dense->forward(); }) == expected);
}

// Sanitizers bring an allocator of their own, which does not keep what is freed.
#ifndef MOELAB_SANITIZED

TEST_CASE("a steady step takes no new memory from the system", "[bench]") {
  keep_freed_memory();
  LayerCase layer({.tokens = 1024, .d_model = 64, .d_ff = 128, .num_experts = 8, .top_k = 2},
                  gemm::Precision::float32);
  for (int i = 0; i < 3; ++i) layer.forward_backward();
  const std::int64_t before = test::page_faults();
  for (int i = 0; i < 10; ++i) layer.forward_backward();
  // One step handles about 10 MB, 2,500 pages, of values and gradients.
  CHECK(test::page_faults() - before < 500);
}

#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 33)

TEST_CASE("a steady training step allocates nothing from the system, dense or mixture", "[bench]") {
  keep_freed_memory();
  // One thread, so that each step asks for the same memory in the same order.
  const int threads = parallel::threads();
  parallel::set_threads(1);
  const auto heap = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.arena + info.hblkhd;  // bytes that the system gave
  };
  for (const gemm::Precision precision : {gemm::Precision::float32, gemm::Precision::bfloat16}) {
    for (const bool is_moe : {false, true}) {
      CAPTURE(is_moe, name_of(precision));
      TrainCase model({.d_model = 32, .num_layers = 2, .num_heads = 2, .d_ff = 24, .seq_len = 32, .batch = 8},
                      precision, is_moe);
      for (int i = 0; i < 20; ++i) model.step();
      const std::size_t before = heap();
      for (int i = 0; i < 50; ++i) model.step();
      if (is_moe) {
        // The rows of an expert change from step to step: its largest block so far may be new.
        CHECK(heap() <= before + before / 10);
      } else {
        CHECK(heap() == before);
      }
    }
  }
  parallel::set_threads(threads);
}

#endif

#endif

TEST_CASE("the benchmarks fill their tables", "[bench]") {
  const Report layer = bench_layer(once(), {kSmall});
  REQUIRE(layer.tables.size() == 1);
  CHECK(layer.tables[0].rows.size() == 4);  // two precisions, forward and both
  const DecoderShape decoder{.d_model = 16,
                             .num_layers = 2,
                             .num_heads = 2,
                             .d_ff = 8,
                             .num_experts = 4,
                             .top_k = 2,
                             .vocab_size = 11,
                             .seq_len = 8,
                             .batch = 2};
  const Report train = bench_train(once(), decoder);
  REQUIRE(train.tables.size() == 1);
  CHECK(train.tables[0].rows.size() == 4);
  const Report scaling = bench_scaling(once(), kSmall, 16);
  CHECK(scaling.tables.size() == 3);
  for (const Report* report : {&layer, &train, &scaling}) {
    for (const Table& table : report->tables) {
      for (const Row& row : table.rows) {
        for (std::size_t c = 0; c < row.values.size(); ++c) {
          const std::string& name = table.columns[c].name;
          CAPTURE(table.name, name);
          if (name.rfind("peer", 0) == 0) {
            CHECK(std::isnan(row.values[c]));  // no peer was asked for
          } else if (name != "peak" && name != "spread") {
            CHECK(row.values[c] > 0);
          }
        }
      }
    }
  }
}

TEST_CASE("a report is the same as text, JSON and HDF5", "[bench]") {
  Report report;
  report.facts = {{"cpu", "some"}};
  Table table{.name = "t",
              .title = "A title.",
              .labels = {"shape"},
              .columns = {{"ms", "ms", "time", 1}},
              .rows = {}};
  table.add({{"a"}, {1.25}});
  table.add({{"longer"}, {std::numeric_limits<double>::quiet_NaN()}});
  CHECK_THROWS_AS(table.add({{"a"}, {1, 2}}), Error);
  report.tables = {table};

  CHECK(to_text(report) ==
        "cpu             some\n\n"
        "A title.\n"
        "shape    ms\n"
        "         ms\n"
        "a       1.2\n"
        "longer    -\n");
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  CHECK(json["facts"]["cpu"] == "some");
  CHECK(json["tables"]["t"][0]["ms"] == 1.25);
  CHECK(json["tables"]["t"][1]["shape"] == "longer");
  CHECK(json["tables"]["t"][1]["ms"].is_null());

  const hdf5::Group root = to_hdf5(report);
  const hdf5::Group* group = root.find_group("t");
  REQUIRE(group != nullptr);
  const hdf5::Dataset* ms = group->find("ms");
  REQUIRE(ms != nullptr);
  CHECK(std::get<std::vector<double>>(ms->values)[0] == 1.25);
  CHECK(ms->meaning.units == "ms");
}

TEST_CASE("the peak is that of an arithmetic unit, not of a loop that was removed", "[bench]") {
  const double peak = fma_peak_gflops(1);
#ifndef __FMA__
  CHECK(std::isnan(peak));  // as in a build that is not for this machine
  return;
#endif
  CHECK(peak > 0.1);
  CHECK(peak < 2000);
}

TEST_CASE("what a peer's script prints is matched to shapes", "[bench]") {
  Options options;
  PeerLayers none;
  run_layer_peer(options, none);
  CHECK(std::isnan(none.gflops(kSmall, gemm::Precision::float32, "forward")));

  const std::string folder = "bench_peer_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/moe_layer_torch.py")
      << R"(echo '{"rows": [{"tokens": 96, "d_model": 16, "d_ff": 24, "num_experts": 4, "top_k": 2,
            "precision": "bfloat16", "forward_gflops": 7, "both_gflops": 5}]}')";
  options.peer = "/bin/sh";
  options.peer_scripts = folder;
  PeerLayers peer;
  run_layer_peer(options, peer);
  CHECK(peer.gflops(kSmall, gemm::Precision::bfloat16, "forward") == 7);
  CHECK(peer.gflops(kSmall, gemm::Precision::bfloat16, "both") == 5);
  CHECK(std::isnan(peer.gflops(kSmall, gemm::Precision::float32, "both")));

  std::ofstream(folder + "/train_decoder_torch.py") << "exit 3";
  CHECK_THROWS_AS(run_train_peer(options, {}, gemm::Precision::float32, true), Error);
  std::ofstream(folder + "/train_decoder_torch.py") << "echo nothing";
  CHECK_THROWS_AS(run_train_peer(options, {}, gemm::Precision::float32, true), Error);
  std::filesystem::remove_all(folder);
}

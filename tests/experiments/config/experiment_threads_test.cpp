#include "core/fields_writer.hpp"
#include "core/yaml.hpp"
#include "tests/experiments/config/experiment_text.hpp"
#include "tests/support/catch.hpp"

#include <string>
#include <thread>
#include <vector>

using namespace moelab;

// It holds values only, nothing that a first look fills in. The thread sanitizer runs this too.
TEST_CASE("Many threads read one experiment, and the tree that it came from") {
  const std::string text = kBase + "variants:\n  dense: {}\n  moe:\n    model.ffn: {" + kMoe + "}\n";
  const Experiment e = load(text);
  REQUIRE(e.runs.size() == 2);
  Diagnostics diagnostics;
  const yaml::Node tree = yaml::parse(text, yaml::make_source("e", text), diagnostics);
  const std::string emitted = yaml::emit(tree);
  std::vector<int> good(8, 0);
  std::vector<std::thread> threads;
  for (int& count : good) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        bool same =
            yaml::emit(tree) == emitted && tree.find("none") == nullptr && tree.find("model") != nullptr;
        for (const Run& run : e.runs) {
          RunConfig copy = run.config;
          same = same && yaml::emit(write_fields(copy)) == run.resolved_yaml &&
                 run.config.model.ffn_of(0).kind == (run.variant == "moe" ? "moe" : "dense");
        }
        count += same ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == std::vector<int>(8, 20));
}

// Every registered router and expert in a whole run: training, evaluation, and a results file that is read
// back.
#include "experiments/results/results_file.hpp"
#include "experiments/training/run_one.hpp"
#include "moe/registry.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/kind_examples.hpp"

#include <cmath>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

double final_loss(const fs::path& folder) {
  const ResultsFile file(folder / "run.h5");
  REQUIRE(file.runs().size() == 1);
  CHECK(file.runs().front().status == RunStatus::done);
  return file.runs().front().eval_loss_final;
}

template <class Options>
void run_all(const moe::KindTable<Options>& kinds,
             const std::map<std::string, std::vector<std::string>>& examples) {
  const SmallExperiment fixture({"train.max_steps=4", "train.schedule.warmup_tokens=0",
                                 "eval.every_tokens=128", "train.checkpoint={every_tokens: 128, keep: 4}"});
  int number = 0;
  for (const std::string& kind : kinds.names()) {
    REQUIRE(examples.count(kind) == 1);
    for (const std::string& example : examples.at(kind)) {
      INFO(example);
      Run run = fixture.run("moe");
      run.config.model.ffn = test::ffn_config(example);
      const fs::path folder = fixture.folder.path() / fmt::format("{}", number++);
      RunSetup setup{.data = *fixture.data, .folder = folder, .point = {}, .provenance = {}};
      fs::create_directories(setup.folder);
      const RunResult result = run_one(run, setup);
      INFO(result.reason);
      REQUIRE(result.status == RunStatus::done);
      const double loss = final_loss(setup.folder);
      CHECK(std::isfinite(loss));
      CHECK(loss < 6);  // log 256 = 5.5

      // As if it had been killed after step 2: it goes on from there, to the same bits.
      for (const char* step : {"step_3.h5", "step_4.h5"}) fs::remove(setup.folder / "checkpoints" / step);
      setup.resume = true;
      REQUIRE(run_one(run, setup).status == RunStatus::done);
      CHECK(final_loss(setup.folder) == loss);
    }
  }
}

}  // namespace

TEST_CASE("every router trains, is evaluated, and leaves results", "[every_kind]") {
  run_all(moe::router_kinds(), test::router_examples());
}

TEST_CASE("every expert trains, is evaluated, and leaves results", "[every_kind]") {
  run_all(moe::expert_kinds(), test::expert_examples());
}

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

template <class Options>
void run_all(const moe::KindTable<Options>& kinds,
             const std::map<std::string, std::vector<std::string>>& examples) {
  const SmallExperiment fixture({"train.max_steps=3", "train.schedule.warmup_tokens=0"});
  int number = 0;
  for (const std::string& kind : kinds.names()) {
    REQUIRE(examples.count(kind) == 1);
    for (const std::string& example : examples.at(kind)) {
      INFO(example);
      Run run = fixture.run("moe");
      run.config.model.ffn = test::ffn_config(example);
      RunSetup setup{.data = *fixture.data, .folder = fixture.folder.path() / fmt::format("{}", number++)};
      fs::create_directories(setup.folder);
      const RunResult result = run_one(run, setup);
      INFO(result.reason);
      REQUIRE(result.status == RunStatus::done);
      const ResultsFile file(setup.folder / "run.h5");
      REQUIRE(file.runs().size() == 1);
      CHECK(file.runs().front().status == RunStatus::done);
      CHECK(std::isfinite(file.runs().front().eval_loss_final));
      CHECK(file.runs().front().eval_loss_final < 6);  // log 256 = 5.5
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

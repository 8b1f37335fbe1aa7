#include "core/error.hpp"
#include "core/parallel.hpp"
#include "experiments/config/select_runs.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/load_execution.hpp"
#include "experiments/training/run_experiment.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/experiments/training/outcome.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <atomic>

#include <fmt/format.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// 128 tokens a step: 5, 8 and 12 steps, of which the last 2 decay.
std::vector<std::string> branches(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = {
      "train.max_steps=null", "train.branches=[640, 1_024, 1500]",
      "train.schedule={kind: wsd, warmup_tokens: 256, decay_tokens: 256, min_lr_ratio: 0}",
      "train.checkpoint={every_tokens: 256, keep: 2}"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

RunOptions options_in(const SmallExperiment& fixture) {
  RunOptions options;
  options.output_root = fixture.folder.path() / "runs";
  options.quiet = true;
  return options;
}

// The run trained by itself.
Outcome independent(const SmallExperiment& fixture, const Run& run) {
  Run alone = run;
  alone.trunk.clear();
  alone.trunk_step = 0;
  alone.branch_steps.clear();
  RunSetup setup{*fixture.data, fixture.folder.path() / ("alone-" + run.name), {}, {}};
  fs::create_directories(setup.folder);
  REQUIRE(run_one(alone, setup).status == RunStatus::done);
  return outcome_of(setup.folder);
}

}  // namespace

TEST_CASE("Branches are runs, and the longest is their trunk", "[branch]") {
  const SmallExperiment fixture(branches());
  const std::vector<Run>& runs = fixture.experiment.runs;
  REQUIRE(runs.size() == 6);
  CHECK(runs[0].name == "dense-s5-t640");
  CHECK(runs[1].name == "dense-s5-t1.024k");
  CHECK(runs[2].name == "dense-s5-t1.5k");
  CHECK(runs[5].name == "moe-s5-t1.5k");
  CHECK(runs[0].trunk == "dense-s5-t1.5k");
  CHECK(runs[0].trunk_step == 3);
  CHECK(runs[1].trunk_step == 6);
  CHECK(runs[2].trunk.empty());
  CHECK(runs[2].branch_steps == std::vector<std::int64_t>{3, 6});
  CHECK(runs[0].config.train.max_tokens == 640);
  CHECK(runs[0].config.train.num_steps() == 5);
  CHECK_FALSE(runs[0].config.train.branches.has_value());
  // Compared length by length: the same lengths of both variants are the same points.
  CHECK(fixture.experiment.points.size() == 3);
  CHECK(runs[3].point == runs[0].point);
  CHECK(fixture.experiment.points[1].settings ==
        std::vector<std::pair<std::string, std::string>>{{"train.max_tokens", "1024"}});
}

TEST_CASE("A branch equals a run of its length, bit for bit", "[branch]") {
  const SmallExperiment fixture(branches());
  parallel::set_threads(2);
  const ExperimentOutcome outcome = run_experiment(fixture.experiment, options_in(fixture));
  CHECK(outcome.failed.empty());
  for (const Run& run : fixture.experiment.runs) {
    INFO(run.name);
    check_same(outcome_of(outcome.folder / run.name), independent(fixture, run));
    CHECK(fs::exists(outcome.folder / run.name / "run.h5"));
  }
  const ResultsFile results(outcome.results);
  CHECK(results.runs().size() == 6);
  const auto trunk = results.reader().attribute("runs/moe-s5-t640/provenance", "trunk");
  REQUIRE(trunk.has_value());
  CHECK(std::get<std::string>(*trunk) == "moe-s5-t1.5k");
  // What branches began with was handed over, not copied.
  CHECK(fs::is_empty(outcome.folder / "moe-s5-t1.5k" / "branches"));
  parallel::set_threads(0);
}

TEST_CASE("Branches that were interrupted go on to the same bits", "[branch]") {
  SmallExperiment fixture(branches());
  select_runs(fixture.experiment, {.variants = {"moe"}, .seeds = {}, .points = {}});
  REQUIRE(fixture.experiment.runs.size() == 3);
  std::vector<Outcome> expected;
  for (const Run& run : fixture.experiment.runs) expected.push_back(independent(fixture, run));
  // Stop requests are asked for once a step and once a run: within the trunk, at its end, within branches.
  for (const int stop_at : {2, 5, 9, 13, 15, 16}) {
    INFO("stopped at question " << stop_at);
    RunOptions options = options_in(fixture);
    options.jobs = 1;
    int asked = 0;
    options.stop_requested = [&] { return ++asked >= stop_at; };
    const ExperimentOutcome first = run_experiment(fixture.experiment, options);
    options.stop_requested = [] { return false; };
    options.resume = first.folder;
    const ExperimentOutcome second = run_experiment(fixture.experiment, options);
    CHECK(second.failed.empty());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO(fixture.experiment.runs[i].name);
      check_same(outcome_of(second.folder / fixture.experiment.runs[i].name), expected[i]);
    }
  }
}

TEST_CASE("A branch that was begun and has no good checkpoint left goes on from the start", "[branch]") {
  SmallExperiment fixture(branches());
  select_runs(fixture.experiment, {.variants = {"moe"}, .seeds = {}, .points = {}});
  const Run& branch = fixture.experiment.runs[0];
  RunOptions options = options_in(fixture);
  options.jobs = 1;
  int asked = 0;
  // Asked once a run and after each step but the last: after the first step of the first branch.
  options.stop_requested = [&] { return ++asked > 13; };
  options.resume = run_experiment(fixture.experiment, options).folder;
  const fs::path checkpoints = options.resume / branch.name / "checkpoints";
  REQUIRE(fs::exists(checkpoints / "step_4.h5"));
  for (const char* name : {"step_3.h5", "step_4.h5"}) {
    if (fs::exists(checkpoints / name))
      fs::rename(checkpoints / name, checkpoints / (name + std::string(".passed_over")));
  }
  options.stop_requested = [] { return false; };
  CHECK(run_experiment(fixture.experiment, options).failed.empty());
  check_same(outcome_of(options.resume / branch.name), independent(fixture, branch));
}

TEST_CASE("A branch whose trunk did not come to it is told as failed", "[branch]") {
  // The trunk diverges at its third step, of which the loss is not finite.
  const SmallExperiment fixture(
      branches({"variants=null", "train.optimizer.lr=1e30", "train.grad_clip=null"}));
  const ExperimentOutcome outcome = run_experiment(fixture.experiment, options_in(fixture));
  REQUIRE(outcome.failed.size() == 3);
  CHECK_THAT(outcome.failed[0].reason, Contains("step 3"));
  CHECK(outcome.failed[1].name == "base-s5-t640");
  CHECK(outcome.failed[2].name == "base-s5-t1.024k");
  CHECK_THAT(outcome.failed[2].reason, Contains("base-s5-t1.5k did not come to step 6"));
  CHECK(ResultsFile(outcome.results).runs().size() == 1);
}

TEST_CASE("A shorter length that is added when its trunk is beyond it is trained from the start",
          "[branch]") {
  const SmallExperiment fixture(branches({"variants=null"}));
  const Run& added = fixture.experiment.runs[0];
  REQUIRE(added.name == "base-s5-t640");
  const Outcome expected = independent(fixture, added);
  const SmallExperiment two(branches({"variants=null", "train.branches=[1_024, 1500]"}));
  REQUIRE(two.experiment.runs.size() == 2);
  LoadOptions three;
  three.overrides = {"train.branches=[640, 1_024, 1500]"};
  const auto check_added = [&](const ExperimentOutcome& outcome) {
    check_same(outcome_of(outcome.folder / added.name), expected);
    const ResultsFile results(outcome.results);
    CHECK(results.run(added.name).status == RunStatus::done);
    CHECK_FALSE(results.reader().attribute("runs/" + added.name + "/provenance", "trunk").has_value());
  };
  RunOptions options = options_in(two);
  options.jobs = 1;
  SECTION("the trunk is done") {
    options.resume = run_experiment(two.experiment, options).folder;
    // It is stopped at its second step and gone on with.
    int asked = 0;
    options.stop_requested = [&] { return ++asked > 3; };
    CHECK(run_experiment(load_execution(options.resume, three), options).interrupted);
    REQUIRE(fs::exists(options.resume / added.name / "checkpoints" / "step_2.h5"));
    options.stop_requested = [] { return false; };
    const ExperimentOutcome outcome = run_experiment(load_execution(options.resume, {}), options);
    REQUIRE(outcome.failed.empty());
    check_added(outcome);
  }
  SECTION("the trunk was stopped at its step or beyond it, and fails") {
    const int stop = GENERATE(3, 9);  // the branch leaves the trunk after 3
    INFO("stopped at step " << stop);
    int asked = 0;
    // Asked once a run and after each step.
    options.stop_requested = [&] { return ++asked > stop; };
    options.resume = run_experiment(two.experiment, options).folder;
    options.stop_requested = [] { return false; };
    REQUIRE(fs::exists(options.resume / "base-s5-t1.5k" / "checkpoints" / fmt::format("step_{}.h5", stop)));
    fs::create_directories(options.resume / "base-s5-t1.5k" / "run.h5.tmp" / "in the way");
    const ExperimentOutcome outcome = run_experiment(load_execution(options.resume, three), options);
    // A branch that leaves it after 6 has not begun either where it was stopped before.
    std::vector<std::string> failed = {"base-s5-t1.5k"};
    if (stop < 6) failed.emplace_back("base-s5-t1.024k");
    REQUIRE(outcome.failed.size() == failed.size());
    for (std::size_t i = 0; i < failed.size(); ++i) CHECK(outcome.failed[i].name == failed[i]);
    check_added(outcome);
  }
}

TEST_CASE("Branches that cannot be are refused", "[branch]") {
  const auto error_of = [](const std::vector<std::string>& overrides) {
    try {
      const SmallExperiment fixture(branches(overrides));
      return std::string("no error");
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
  };
  CHECK_THAT(error_of({"train.schedule={kind: cosine}"}), Contains("train.branches") && Contains("wsd"));
  CHECK_THAT(error_of({"train.max_tokens=5000"}), Contains("leave out"));
  CHECK_THAT(error_of({"train.branches=[]"}), Contains("rise"));
  CHECK_THAT(error_of({"train.branches=[1024, 640]"}), Contains("rise"));
  CHECK_THAT(error_of({"train.branches=[1000, 1024]"}), Contains("rise"));  // both are 8 steps
  CHECK_THAT(error_of({"train.branches=[384, 1024]"}), Contains("warm-up and decay"));
}

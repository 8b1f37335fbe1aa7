#include "experiments/training/run_experiment.hpp"

#include "experiments/results/results_file.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <atomic>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

RunOptions options_in(const SmallExperiment& fixture, Index jobs) {
  RunOptions options;
  options.output_root = fixture.folder.path() / fmt::format("runs{}", jobs);
  options.jobs = jobs;
  options.quiet = true;
  return options;
}

std::vector<double> curve(const ResultsFile& file, const std::string& run, const std::string& metric) {
  return file.series(run, metric).value().value;
}

}  // namespace

TEST_CASE("runs at the same time give the same bits as runs one after another", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1, 2]"});
  const ExperimentOutcome one = run_experiment(fixture.experiment, options_in(fixture, 1));
  const ExperimentOutcome four = run_experiment(fixture.experiment, options_in(fixture, 4));
  const ResultsFile a(one.results);
  const ResultsFile b(four.results);
  REQUIRE(a.runs().size() == 4);
  REQUIRE(b.runs().size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(a.runs()[i].run == b.runs()[i].run);
    CHECK(a.runs()[i].status == RunStatus::done);
    for (const std::string metric : {"train/loss", "train/grad_norm", "eval/loss"}) {
      CHECK(curve(a, a.runs()[i].run, metric) == curve(b, b.runs()[i].run, metric));
    }
  }
  CHECK(fs::exists(one.folder.parent_path() / "latest" / "results.h5"));
}

TEST_CASE("a run that diverges is told of and does not stop the others", "[run_experiment]") {
  const SmallExperiment fixture({"variants.wild={train.optimizer.lr: 1e30, train.grad_clip: null}"});
  const ExperimentOutcome outcome = run_experiment(fixture.experiment, options_in(fixture, 2));
  REQUIRE(outcome.failed.size() == 1);
  CHECK(outcome.failed[0].name == "wild-s5");
  CHECK_FALSE(outcome.interrupted);
  const ResultsFile results(outcome.results);
  CHECK(results.run("wild-s5").status == RunStatus::diverged);
  CHECK(results.run("moe-s5").status == RunStatus::done);
}

TEST_CASE("an execution that was stopped is finished by resuming it", "[run_experiment]") {
  const SmallExperiment fixture;
  const ExperimentOutcome whole = run_experiment(fixture.experiment, options_in(fixture, 1));
  RunOptions options = options_in(fixture, 2);
  std::atomic<int> asked{0};
  options.stop_requested = [&] { return ++asked > 7; };
  const ExperimentOutcome stopped = run_experiment(fixture.experiment, options);
  CHECK(stopped.interrupted);

  options.stop_requested = [] { return false; };
  options.resume = stopped.folder;
  const Experiment again = load_execution(stopped.folder, {});
  const ExperimentOutcome finished = run_experiment(again, options);
  CHECK(finished.folder == fs::canonical(stopped.folder));
  const ResultsFile a(whole.results);
  const ResultsFile b(finished.results);
  for (const RunSummary& run : a.runs()) {
    CHECK(b.run(run.run).status == RunStatus::done);
    CHECK(curve(a, run.run, "eval/loss") == curve(b, run.run, "eval/loss"));
  }
}

TEST_CASE("an execution that is stopped before its first run says so", "[run_experiment]") {
  const SmallExperiment fixture;
  RunOptions options = options_in(fixture, 1);
  options.stop_requested = [] { return true; };
  const ExperimentOutcome stopped = run_experiment(fixture.experiment, options);
  CHECK(stopped.interrupted);
  CHECK(ResultsFile(stopped.results).runs().empty());
}

TEST_CASE("a run that cannot even begin does not stop the others, and is tried again", "[run_experiment]") {
  const SmallExperiment fixture;
  RunOptions options = options_in(fixture, 1);
  options.stop_requested = [] { return true; };
  options.resume = run_experiment(fixture.experiment, options).folder;
  options.stop_requested = [] { return false; };
  fixture.folder.write((options.resume / "dense-s5").lexically_relative(fixture.folder.path()), "in the way");
  const ExperimentOutcome first = run_experiment(fixture.experiment, options);
  REQUIRE(first.failed.size() == 1);
  CHECK(first.failed[0].name == "dense-s5");
  CHECK_FALSE(first.interrupted);
  CHECK(ResultsFile(first.results).run("moe-s5").status == RunStatus::done);

  fs::remove(options.resume / "dense-s5");
  const ExperimentOutcome second = run_experiment(fixture.experiment, options);
  CHECK(second.failed.empty());
  CHECK(ResultsFile(second.results).run("dense-s5").status == RunStatus::done);
  CHECK(ResultsFile(second.results).runs().size() == 2);
}

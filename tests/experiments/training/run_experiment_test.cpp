#include "experiments/training/run_experiment.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/parallel.hpp"
#include "experiments/accounting/report.hpp"
#include "experiments/config/select_runs.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/load_execution.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <cstdlib>

#include <nlohmann/json.hpp>

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

// Stops after the first run, dense-s1, one at a time.
ExperimentOutcome run_first_only(const SmallExperiment& fixture) {
  RunOptions options = options_in(fixture, 1);
  int asked = 0;
  // Asked before a run and after each of its steps but the last.
  options.stop_requested = [&] { return ++asked > 12; };
  ExperimentOutcome outcome = run_experiment(fixture.experiment, options);
  REQUIRE(outcome.interrupted);
  REQUIRE(RunStore::open(outcome.folder).runs() == std::vector<std::string>{"dense-s1"});
  REQUIRE(ResultsFile(outcome.results).run("dense-s1").status == RunStatus::done);
  return outcome;
}

Experiment loaded(const fs::path& folder, std::vector<std::string> overrides,
                  const RunSelection& selection = {}) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  return load_execution(folder, options, selection);
}

std::string error_of(const fs::path& folder, const std::vector<std::string>& overrides,
                     const RunSelection& selection = {}) {
  try {
    loaded(folder, overrides, selection);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

ExperimentOutcome go_on(const SmallExperiment& fixture, const fs::path& folder,
                        const Experiment& experiment) {
  RunOptions options = options_in(fixture, 2);
  options.resume = folder;
  return run_experiment(experiment, options);
}

std::vector<std::string> runs_in(const fs::path& results) {
  std::vector<std::string> names;
  const ResultsFile file(results);
  for (const RunSummary& run : file.runs()) names.push_back(run.run);
  return names;
}

std::vector<double> curve(const ResultsFile& file, const std::string& run, const std::string& metric) {
  return file.series(run, metric).value().value;
}

}  // namespace

TEST_CASE("the FLOPs of a token in results are those that are counted, attention included", "[experiment]") {
  const SmallExperiment fixture;
  const ExperimentOutcome outcome = run_experiment(fixture.experiment, options_in(fixture, 1));
  const ResultsFile results(outcome.results);
  for (const std::string variant : {"dense", "moe"}) {
    const Run& run = fixture.run(variant);
    const std::unique_ptr<Model> model = make_model(run.config.model, shape_of(*fixture.data));
    const auto counted = nlohmann::json::parse(accounting_json({{variant, account(*model, 16)}}));
    const double flops = results.run(run.name).flops_forward_per_token;
    CHECK(counted.at("flops_forward_per_token") == flops);
    CHECK(3 * flops == counted.at("flops_training_per_token"));
    double products = 0;
    const std::string column = ResultsFile::group_of(run.name) + "/accounting/flops_forward_per_token";
    for (const double module : results.reader().read<double>(column)) products += module;
    CHECK(counted.at("product_flops_per_token") == products);
    // Scores and values of two layers: a multiply-add for each of 16 positions and 16 columns, both times.
    CHECK(flops - products == 2 * 2 * 2 * 16 * 16);
    // 12 steps of 128 tokens.
    CHECK(results.run(run.name).train_flops == 3 * flops * 12 * 128);
  }
}

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

TEST_CASE("an execution is not gone on with under another config", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1, 2]", "train.schedule={kind: constant}"});
  const fs::path folder = run_first_only(fixture).folder;
  const std::string lr = error_of(folder, {"train.optimizer.lr=0.5"});
  CHECK_THAT(lr, Contains("dense-s1, which is done") && Contains("train.optimizer.lr: 0.01 -> 0.5"));
  CHECK(lr.find("moe-s1") == std::string::npos);  // it has not begun
  CHECK_THAT(error_of(folder, {"train.optimizer.lr=0.5"}, {.variants = {}, .seeds = {2}, .points = {}}),
             Contains("dense-s1"));
  CHECK_THAT(error_of(folder, {"train.max_steps=20"}), Contains("train.max_steps: 12 -> 20"));
  CHECK_THAT(error_of(folder, {"eval.max_tokens=64"}), Contains("eval.max_tokens: 512 -> 64"));
  CHECK(RunStore::open(folder).record().overrides.size() == 2);

  // What is free is accepted, and remembered.
  const Experiment experiment = loaded(folder, {"log.every_steps=6", "train.checkpoint={every_tokens: 512}"});
  CHECK(go_on(fixture, folder, experiment).failed.empty());
  CHECK(RunStore::open(folder).record().overrides ==
        std::vector<std::string>{"seeds=[1, 2]", "train.schedule={kind: constant}", "log.every_steps=6",
                                 "train.checkpoint={every_tokens: 512}"});
  CHECK_THAT(read_file(folder / "dense-s2" / "resolved.yaml"), Contains("every_steps: 6"));
  CHECK(error_of(folder, {}) == "");
  // An override of a variant that has not begun yet is no other config of one that has.
  const fs::path second = run_first_only(fixture).folder;
  CHECK(error_of(second, {"variants.moe.train.optimizer.lr=0.5"}) == "");
}

TEST_CASE("an execution is not gone on with on other data", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1, 2]"});
  const fs::path folder = run_first_only(fixture).folder;
  const fs::path text = fixture.folder.path() / "domain1.txt";
  const std::string before = read_file(text);
  replace_file(text, before.substr(0, before.size() - 1) + "?");
  const RunSelection moe{.variants = {"moe"}, .seeds = {}, .points = {}};
  for (const RunSelection& selection : {RunSelection{}, moe}) {
    const Experiment experiment = loaded(folder, {}, selection);
    CHECK_THROWS_AS(go_on(fixture, folder, experiment), ConfigError);
    CHECK_THROWS_WITH(go_on(fixture, folder, experiment),
                      Contains("the data have changed since dense-s1 was begun") && Contains("data.json"));
    CHECK(RunStore::open(folder).runs() == std::vector<std::string>{"dense-s1"});
  }
  replace_file(text, before);
  CHECK(go_on(fixture, folder, loaded(folder, {}, moe)).failed.empty());
  CHECK(go_on(fixture, folder, loaded(folder, {})).failed.empty());
}

TEST_CASE("runs on data blocks of their own are gone on with when one of the texts has changed",
          "[run_experiment]") {
  const SmallExperiment fixture(
      {"seeds=[1]", "variants.moe.data.domains=[{name: first, path: domain0.txt}]"});
  const fs::path folder = run_first_only(fixture).folder;
  const fs::path text = fixture.folder.path() / "domain1.txt";
  replace_file(text, read_file(text) + "?");
  const RunSelection moe{.variants = {"moe"}, .seeds = {}, .points = {}};
  CHECK(go_on(fixture, folder, loaded(folder, {}, moe)).failed.empty());
  CHECK_THROWS_AS(go_on(fixture, folder, loaded(folder, {})), ConfigError);
}

TEST_CASE("a text that has changed is found where runs cut it in different ways", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1]", "variants.moe.data.seq_len=8"});
  const fs::path folder = run_first_only(fixture).folder;
  const fs::path text = fixture.folder.path() / "domain1.txt";
  const std::string before = read_file(text);
  replace_file(text, before.substr(0, before.size() - 1) + "?");
  const RunSelection moe{.variants = {"moe"}, .seeds = {}, .points = {}};
  CHECK_THROWS_AS(go_on(fixture, folder, loaded(folder, {}, moe)), ConfigError);
  CHECK_THROWS_WITH(go_on(fixture, folder, loaded(folder, {}, moe)),
                    Contains("the data have changed since dense-s1 was begun"));
  CHECK(RunStore::open(folder).runs() == std::vector<std::string>{"dense-s1"});
  replace_file(text, before);
  CHECK(go_on(fixture, folder, loaded(folder, {}, moe)).failed.empty());
}

TEST_CASE("a results file that cannot be written is no fault of the runs", "[run_experiment]") {
  SmallExperiment fixture(
      {"variants.wild={train.optimizer.lr: 1e30, train.grad_clip: null}", "seeds=[1, 2]"});
  select_runs(fixture.experiment, {.variants = {"wild"}, .seeds = {}, .points = {}});
  RunOptions options = options_in(fixture, 1);
  const auto begin = [&] {
    options.resume.clear();
    options.stop_requested = [] { return true; };
    options.resume = run_experiment(fixture.experiment, options).folder;
    fs::create_directories(options.resume / "results.h5.tmp" / "in the way");
  };
  const auto status_of = [&](const std::string& run) {
    const fs::path snapshot = options.resume / run / "run.h5";
    return fs::exists(snapshot) ? ResultsFile(snapshot).run(run).status : RunStatus::running;
  };
  begin();
  options.stop_requested = [] { return false; };
  CHECK_THROWS_WITH(run_experiment(fixture.experiment, options), Contains("results.h5"));
  for (const char* run : {"wild-s1", "wild-s2"}) CHECK(status_of(run) == RunStatus::diverged);

  // It can be written again before the second run: what is told are the runs.
  begin();
  options.stop_requested = [&] {
    if (status_of("wild-s1") == RunStatus::diverged) fs::remove_all(options.resume / "results.h5.tmp");
    return false;
  };
  const ExperimentOutcome outcome = run_experiment(fixture.experiment, options);
  REQUIRE(outcome.failed.size() == 2);
  CHECK(outcome.failed[0].name == "wild-s1");
  CHECK_THAT(outcome.failed[0].reason, Contains("not finite"));
  CHECK(outcome.failed[1].name == "wild-s2");
  CHECK(runs_in(outcome.results) == std::vector<std::string>{"wild-s1", "wild-s2"});
}

TEST_CASE("a damaged resolved.yaml of a run is named", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1, 2]"});
  const ExperimentOutcome stopped = run_first_only(fixture);
  const fs::path file = stopped.folder / "dense-s1" / "resolved.yaml";
  fs::remove(stopped.folder / "dense-s1" / "run.h5");  // it is not done
  for (const auto& [content, problem] :
       std::vector<std::pair<std::string, std::string>>{{"data: {}\n", "no `train`"},
                                                        {"train: [", "not YAML"},
                                                        {"train: {steps: 1}\n", "another version"}}) {
    replace_file(file, content);
    CHECK_THROWS_WITH(loaded(stopped.folder, {}), Contains(file.string() + ": ") && Contains(problem));
  }
}

TEST_CASE("a selection of an execution leaves the other runs in the results", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1, 2]", "compare={baseline: moe}"});
  const fs::path folder = run_first_only(fixture).folder;
  const RunSelection second_seed{.variants = {}, .seeds = {2}, .points = {}};
  const ExperimentOutcome outcome = go_on(fixture, folder, loaded(folder, {}, second_seed));
  CHECK(outcome.failed.empty());
  CHECK(runs_in(outcome.results) == std::vector<std::string>{"dense-s1", "dense-s2", "moe-s2"});
  CHECK(ResultsFile(outcome.results).experiment().baseline == "moe");
  const RunSelection dense{.variants = {"dense"}, .seeds = {}, .points = {}};
  CHECK(runs_in(go_on(fixture, folder, loaded(folder, {}, dense)).results).size() == 3);
  CHECK(ResultsFile(outcome.results).experiment().baseline == "moe");
  // Without a selection what is left is run, and a damaged snapshot is made anew.
  fs::resize_file(folder / "dense-s2" / "run.h5", 100);
  CHECK(runs_in(go_on(fixture, folder, loaded(folder, {})).results) ==
        std::vector<std::string>{"dense-s1", "dense-s2", "moe-s1", "moe-s2"});
}

TEST_CASE("an execution of some runs is finished with these, and extended when asked to",
          "[run_experiment]") {
  SmallExperiment fixture({"seeds=[1, 2]"});
  select_runs(fixture.experiment, {.variants = {"dense"}, .seeds = {}, .points = {}});
  const fs::path folder = run_first_only(fixture).folder;
  CHECK(loaded(folder, {}).runs.size() == 2);
  CHECK(loaded(folder, {"log.every_steps=5"}).runs.size() == 2);
  CHECK(loaded(folder, {"seeds=[1, 2, 3]"}).runs.size() == 4);  // with both variants of the new seed
  const RunSelection moe{.variants = {"moe"}, .seeds = {}, .points = {}};
  const ExperimentOutcome outcome = go_on(fixture, folder, loaded(folder, {}, moe));
  CHECK(runs_in(outcome.results) == std::vector<std::string>{"dense-s1", "moe-s1", "moe-s2"});
  CHECK(loaded(folder, {}).runs.size() == 4);
}

TEST_CASE("an execution whose runs are no longer those of its file is refused", "[run_experiment]") {
  setenv("MOELAB_TEST_SEED", "7", 1);
  const SmallExperiment fixture({"seeds=[1, '${env:MOELAB_TEST_SEED,2}']"});
  const fs::path folder = run_first_only(fixture).folder;
  CHECK(error_of(folder, {}) == "");
  unsetenv("MOELAB_TEST_SEED");
  CHECK_THAT(error_of(folder, {}), Contains("no longer gives: dense-s7, moe-s7"));
  CHECK_THAT(error_of(folder, {"seeds=[1]"}), Contains("no longer gives: dense-s7, moe-s7"));
}

TEST_CASE("an execution that another process works in is left alone", "[run_experiment]") {
  const SmallExperiment fixture({"seeds=[1, 2]"});
  const fs::path folder = run_first_only(fixture).folder;
  const Experiment experiment = loaded(folder, {"log.every_steps=6"});
  {
    RunStore other = RunStore::open(folder);
    other.lock();
    CHECK_THROWS_WITH(go_on(fixture, folder, experiment), Contains("another process trains the runs of"));
  }
  CHECK(RunStore::open(folder).runs().size() == 1);
  CHECK(RunStore::open(folder).record().overrides.size() == 1);
  CHECK(go_on(fixture, folder, experiment).failed.empty());
  // What was loaded before another process changed it does not count any more.
  const Experiment late = loaded(folder, {});
  go_on(fixture, folder, loaded(folder, {"log.sample_tokens=4"}));
  CHECK_THROWS_WITH(go_on(fixture, folder, late), Contains("meanwhile"));
}

TEST_CASE("no more runs at a time than threads", "[run_experiment]") {
  parallel::set_threads(3);
  CHECK(jobs_at_a_time(0) == 3);
  CHECK(jobs_at_a_time(2) == 2);
  CHECK(jobs_at_a_time(8) == 3);
  parallel::set_threads(0);
}

// From a trained dense run to a mixture, by the experiment file alone.
#include "core/error.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/load_execution.hpp"
#include "experiments/training/run_experiment.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <fstream>
#include <iterator>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

double final_loss(const fs::path& results, const std::string& run) {
  const ResultsFile file(results);
  for (const RunSummary& r : file.runs()) {
    if (r.run == run) return r.eval_loss_final;
  }
  throw Error("no run " + run);
}

ExperimentOutcome run(const SmallExperiment& fixture) {
  RunOptions options;
  options.output_root = fixture.folder.path() / "runs";
  options.quiet = true;
  return run_experiment(fixture.experiment, options);
}

std::string error_of(const std::vector<std::string>& overrides) {
  try {
    const SmallExperiment fixture(overrides);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a mixture starts from a checkpoint of a dense run, from YAML, and has its loss", "[upcycle]") {
  const SmallExperiment dense({"train.max_steps=40", "train.checkpoint={every_tokens: 1280, keep: 2}"});
  const ExperimentOutcome trained = run(dense);
  REQUIRE(trained.failed.empty());
  const double loss = final_loss(trained.results, "dense-s5");
  const fs::path folder = trained.folder / "dense-s5";
  REQUIRE(fs::exists(folder / "checkpoints" / "step_40.h5"));

  // A folder of a run, its folder of checkpoints, and a file. The four experts of width 16 are shards of the
  // dense FFN of width 32. With hardly any learning rate the loss stays where it is.
  for (const fs::path& start : {folder, folder / "checkpoints", folder / "checkpoints" / "step_40.h5"}) {
    INFO(start.string());
    const SmallExperiment mixture(
        {"model.init={upcycle: '" + start.string() + "'}", "train.optimizer.lr=1e-12", "train.max_steps=3"});
    const ExperimentOutcome outcome = run(mixture);
    REQUIRE(outcome.failed.empty());
    for (const char* name : {"dense-s5", "moe-s5"}) {
      INFO(name);
      CHECK(std::abs(final_loss(outcome.results, name) - loss) < 1e-5);
      const std::string log = text_of(outcome.folder / name / "log.txt");
      CHECK(log.find("starts from the dense checkpoint") != std::string::npos);
      CHECK(log.find("step 40") != std::string::npos);
      CHECK(text_of(outcome.folder / name / "resolved.yaml").find("step_40.h5") != std::string::npos);
    }
  }

  // It goes on learning from there, and noise sets the experts apart.
  const SmallExperiment further({"model.init={upcycle: '" + folder.string() + "', noise: 0.05}",
                                 "train.max_steps=40", "train.schedule.warmup_tokens=256"});
  const ExperimentOutcome learnt = run(further);
  REQUIRE(learnt.failed.empty());
  CHECK(final_loss(learnt.results, "moe-s5") < loss);

  // What does not fit is told before anything runs.
  CHECK_THAT(error_of({"model.init={upcycle: '" + folder.string() + "'}", "model.d_model=32"}),
             Contains("its model.d_model is 16, that of the model is 32"));
  const fs::path moe_folder = trained.folder / "moe-s5";
  CHECK_THAT(error_of({"model.init={upcycle: '" + moe_folder.string() + "'}"}),
             Contains("it is a mixture already"));
}

TEST_CASE("a start that is not there is an error of the experiment file", "[upcycle]") {
  CHECK_THAT(error_of({"model.init={upcycle: nowhere.h5}"}), Contains("model.init: there is no file"));
  const SmallExperiment fixture;
  CHECK_THAT(error_of({"model.init={upcycle: '" + fixture.folder.path().string() + "'}"}),
             Contains("has no checkpoint"));
  CHECK_THAT(error_of({"model.init={upcycle: '" + (fixture.folder.path() / "test.yaml").string() + "'}"}),
             Contains("model.init: "));
}

TEST_CASE("an upcycled execution is gone on with from the checkpoint that it began with", "[upcycle]") {
  const SmallExperiment dense(
      {"train.max_steps=4", "train.checkpoint={every_tokens: 256, keep: 2}", "seeds=[1]"});
  const ExperimentOutcome trained = run(dense);
  REQUIRE(trained.failed.empty());
  // By way of the link, which soon means another execution.
  const fs::path source = trained.folder.parent_path() / "latest" / "dense-s1";
  const SmallExperiment mixture({"model.init={upcycle: '" + source.string() + "'}", "train.max_steps=3",
                                 "seeds=[1, 2]", "train.checkpoint={every_tokens: 128}"});
  const std::string resolved = mixture.run("moe").resolved_yaml;
  CHECK_THAT(resolved, Contains((fs::canonical(trained.folder) / "dense-s1/checkpoints/step_4.h5").string()));

  RunOptions options;
  options.output_root = mixture.folder.path() / "runs";
  options.quiet = true;
  options.jobs = 1;
  int asked = 0;
  // Within the second run, dense-s2.
  options.stop_requested = [&] { return ++asked > 4; };
  options.resume = run_experiment(mixture.experiment, options).folder;
  options.stop_requested = [] { return false; };
  REQUIRE(fs::exists(options.resume / "dense-s2"));
  REQUIRE_FALSE(fs::exists(options.resume / "moe-s1"));

  // The source has a newer checkpoint: the runs that have not begun start like the others.
  const fs::path checkpoints = trained.folder / "dense-s1" / "checkpoints";
  fs::copy_file(checkpoints / "step_4.h5", checkpoints / "step_5.h5");
  const Experiment again = load_execution(options.resume, {});
  for (const Run& r : again.runs) CHECK_THAT(r.resolved_yaml, Contains("step_4.h5"));

  // The source is gone: what has a checkpoint of its own goes on, the rest says what it lacks.
  fs::remove_all(trained.folder);
  const ExperimentOutcome finished = run_experiment(load_execution(options.resume, {}), options);
  REQUIRE(finished.failed.size() == 2);
  CHECK(finished.failed[0].name == "moe-s1");
  CHECK_THAT(finished.failed[0].reason, Contains("step_4.h5"));
  CHECK(ResultsFile(finished.results).run("dense-s2").status == RunStatus::done);
}

TEST_CASE("runs of an execution do not start from a checkpoint that has become another", "[upcycle]") {
  const SmallExperiment dense({"train.max_steps=4", "train.checkpoint={every_tokens: 256, keep: 2}"});
  const fs::path checkpoints = run(dense).folder / "dense-s5" / "checkpoints";
  const fs::path base = dense.folder.path() / "base.h5";
  const auto put = [&](const char* name) {
    fs::copy_file(checkpoints / name, base, fs::copy_options::overwrite_existing);
  };
  put("step_4.h5");
  const SmallExperiment mixture({"model.init={upcycle: '" + base.string() + "'}", "train.max_steps=3",
                                 "seeds=[1, 2]", "train.checkpoint={every_tokens: 128}"});
  RunOptions options;
  options.output_root = mixture.folder.path() / "runs";
  options.quiet = true;
  options.jobs = 1;
  int asked = 0;
  options.stop_requested = [&] { return ++asked > 3; };  // the first run is done, no other is begun
  options.resume = run_experiment(mixture.experiment, options).folder;
  options.stop_requested = [] { return false; };
  REQUIRE(RunStore::open(options.resume).runs() == std::vector<std::string>{"dense-s1"});

  put("step_2.h5");
  CHECK_THROWS_AS(load_execution(options.resume, {}), ConfigError);
  CHECK_THROWS_WITH(load_execution(options.resume, {}),
                    Contains("model.init: " + base.string()) && Contains("not the file any more"));
  std::ofstream(base) << "no checkpoint";
  CHECK_THROWS_WITH(load_execution(options.resume, {}), Contains("is damaged"));
  // After the experiment was loaded, too.
  put("step_4.h5");
  const Experiment loaded = load_execution(options.resume, {});
  put("step_2.h5");
  const ExperimentOutcome refused = run_experiment(loaded, options);
  REQUIRE(refused.failed.size() == 3);
  for (const FailedRun& failed : refused.failed) CHECK_THAT(failed.reason, Contains("not the file any more"));
  put("step_4.h5");
  CHECK(run_experiment(load_execution(options.resume, {}), options).failed.empty());
}

TEST_CASE("a start with another vocabulary or other sequences is told before anything is trained",
          "[upcycle]") {
  const SmallExperiment dense(
      {"train.max_steps=3", "train.checkpoint={every_tokens: 128}", "model.position=learned"});
  const ExperimentOutcome trained = run(dense);
  const std::vector<std::string> start{
      "model.init={upcycle: '" + (trained.folder / "dense-s5").string() + "'}", "model.position=learned"};
  const auto with = [&](const std::string& change) {
    std::vector<std::string> overrides = start;
    overrides.push_back(change);
    return error_of(overrides);
  };
  CHECK(with("train.max_steps=4") == "");
  CHECK_THAT(with("data.tokenizer={kind: bpe, vocab_size: 300}"),
             Contains("(256, 16), that of the model is (300, 16)") && Contains("vocabulary"));
  CHECK_THAT(with("data.seq_len=8"), Contains("(16, 16), that of the model is (8, 16)"));
}

#include "core/checkpoint.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/parallel.hpp"
#include "experiments/config/difference.hpp"
#include "experiments/data/make_dataset.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/experiments/training/outcome.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <fstream>
#include <thread>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kCheckpoints{"train.checkpoint={every_tokens: 256, keep: 2}"};

RunSetup setup_in(const SmallExperiment& fixture, const std::string& name, bool resume = false) {
  const fs::path folder = fixture.folder.path() / name;
  fs::create_directories(folder);
  RunSetup setup{*fixture.data, folder, {}, {}};
  setup.resume = resume;
  return setup;
}

}  // namespace

TEST_CASE("a run that was interrupted and resumed equals the one that was not, bit for bit", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  for (const std::string variant : {"dense", "moe"}) {
    const RunSetup whole = setup_in(fixture, variant + "-whole");
    REQUIRE(run_one(fixture.run(variant), whole).status == RunStatus::done);
    const Outcome expected = outcome_of(whole.folder);
    for (int stop_at = 1; stop_at < 12; stop_at += 2) {
      INFO(variant << " stopped after step " << stop_at);
      int asked = 0;
      RunSetup first = setup_in(fixture, fmt::format("{}-{}", variant, stop_at));
      first.hooks.stop_requested = [&] { return ++asked == stop_at; };
      parallel::set_threads(1);
      REQUIRE(run_one(fixture.run(variant), first).status == RunStatus::interrupted);
      parallel::set_threads(3);
      RunSetup second = setup_in(fixture, fmt::format("{}-{}", variant, stop_at), true);
      REQUIRE(run_one(fixture.run(variant), second).status == RunStatus::done);
      check_same(outcome_of(second.folder), expected);
    }
    parallel::set_threads(0);
  }
}

TEST_CASE("without the newest checkpoint, or with a damaged one, an older one or the start serves",
          "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  const RunSetup whole = setup_in(fixture, "whole");
  REQUIRE(run_one(fixture.run("moe"), whole).status == RunStatus::done);
  const Outcome expected = outcome_of(whole.folder);

  const auto stopped_at_9 = [&](const std::string& name) {
    int asked = 0;
    RunSetup setup = setup_in(fixture, name);
    setup.hooks.stop_requested = [&] { return ++asked == 9; };
    REQUIRE(run_one(fixture.run("moe"), setup).status == RunStatus::interrupted);
    return CheckpointFolder(setup.folder / "checkpoints");
  };
  SECTION("truncated") {
    const CheckpointFolder checkpoints = stopped_at_9("truncated");
    REQUIRE(checkpoints.steps().size() >= 2);
    fs::resize_file(checkpoints.path_of(checkpoints.steps().front()), 1000);
    RunSetup setup = setup_in(fixture, "truncated", true);
    std::string notes;
    setup.note = [&](const std::string& text) { notes += text; };
    REQUIRE(run_one(fixture.run("moe"), setup).status == RunStatus::done);
    CHECK(notes.find("step_9.h5") != std::string::npos);
    check_same(outcome_of(setup.folder), expected);
  }
  SECTION("none left") {
    const CheckpointFolder checkpoints = stopped_at_9("none");
    for (const std::int64_t step : checkpoints.steps()) fs::remove(checkpoints.path_of(step));
    const RunSetup setup = setup_in(fixture, "none", true);
    REQUIRE(run_one(fixture.run("moe"), setup).status == RunStatus::done);
    check_same(outcome_of(setup.folder), expected);
  }
}

TEST_CASE("a checkpoint that a killed writer left half-written is no checkpoint", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  int asked = 0;
  RunSetup first = setup_in(fixture, "run");
  first.hooks.stop_requested = [&] { return ++asked == 5; };
  REQUIRE(run_one(fixture.run("moe"), first).status == RunStatus::interrupted);
  const fs::path stale = first.folder / "checkpoints" / "step_99.h5.tmp";
  std::ofstream(stale) << "half of it";
  const CheckpointFolder checkpoints(first.folder / "checkpoints");
  CHECK(checkpoints.steps().front() == 5);
  RunSetup second = setup_in(fixture, "run", true);
  std::string notes;
  second.note = [&](const std::string& text) { notes += text; };
  REQUIRE(run_one(fixture.run("moe"), second).status == RunStatus::done);
  CHECK(notes.empty());
  CHECK(checkpoints.steps().front() == 12);
  CHECK(recover_run(first.folder).train.back().step == 12);
  CHECK(fs::exists(stale));
}

TEST_CASE("a run that was killed between its last checkpoint and its last snapshot ends like the whole one",
          "[resume]") {
  // Evaluated at the last step, and not before the end.
  for (const char* eval : {"eval={every_tokens: 512, max_tokens: 512}", "eval={max_tokens: 512}"}) {
    const SmallExperiment fixture({kCheckpoints.front(), eval});
    for (const std::string variant : {"dense", "moe"}) {
      INFO(variant << ", " << eval);
      const RunSetup whole = setup_in(fixture, variant + "-whole");
      REQUIRE(run_one(fixture.run(variant), whole).status == RunStatus::done);
      const fs::path killed = fixture.folder.path() / (variant + "-killed");
      fs::copy(whole.folder, killed, fs::copy_options::recursive);
      fs::remove(killed / "run.h5");
      REQUIRE(CheckpointFolder(killed / "checkpoints").steps().front() == 12);
      REQUIRE(run_one(fixture.run(variant), setup_in(fixture, variant + "-killed", true)).status ==
              RunStatus::done);
      const Outcome expected = outcome_of(whole.folder);
      const Outcome resumed = outcome_of(killed);
      check_same(resumed, expected);
      CHECK(expected.results.samples.expert_id.empty() == (variant == "dense"));
      CHECK(resumed.results.samples.weight == expected.results.samples.weight);
      CHECK(resumed.results.samples.token_id == expected.results.samples.token_id);
    }
  }
}

TEST_CASE("a changed config is refused with the difference, and a harmless change is not", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  int asked = 0;
  RunSetup stopped = setup_in(fixture, "changed");
  stopped.hooks.stop_requested = [&] { return ++asked == 5; };
  REQUIRE(run_one(fixture.run("dense"), stopped).status == RunStatus::interrupted);
  const RunSetup setup = setup_in(fixture, "changed", true);

  const Run run = fixture.run("dense");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    Run changed = run;
    const auto at = changed.resolved_yaml.find(from);
    REQUIRE(at != std::string::npos);
    changed.resolved_yaml.replace(at, from.size(), to);
    return changed;
  };
  std::string message;
  try {
    run_one(replaced("d_ff: 32", "d_ff: 48"), setup);
  } catch (const ConfigError& e) {
    message = e.what();
  }
  CHECK(message.find("model.ffn.d_ff: 32 -> 48") != std::string::npos);
  // A cosine that ends elsewhere would have been another one from the first step.
  CHECK_THROWS_AS(run_one(replaced("max_steps: 12", "max_steps: 20"), setup), ConfigError);
  CHECK(run_one(replaced("routing_every_steps: 4", "routing_every_steps: 2"), setup).status ==
        RunStatus::done);
  CHECK_THAT(read_file(setup.folder / "resolved.yaml"), Contains("routing_every_steps: 2"));
}

TEST_CASE("what may change on resuming depends on the schedule, and on where it is", "[resume]") {
  const auto config = [](int max_tokens, const std::string& schedule, const std::string& rest = "") {
    return fmt::format(
        "train: {{max_tokens: {}, batch_tokens: 10, optimizer: {{lr: 0.1}}, schedule: {{{}}}}}\n{}",
        max_tokens, schedule, rest);
  };
  const auto differences = [&](int before, int after, const std::string& schedule, std::int64_t step) {
    return differences_against_resume(config(before, schedule), config(after, schedule), step);
  };
  const std::vector<std::string> longer{"train.max_tokens: 100 -> 200"};
  const std::vector<std::string> shorter{"train.max_tokens: 100 -> 60"};
  CHECK(differences_against_resume(config(100, "kind: constant", "log: {every_steps: 1}\n"),
                                   config(200, "kind: constant", "log: {every_steps: 5}\n"), 10)
            .empty());
  CHECK(differences(100, 200, "kind: cosine", 1) == longer);
  // What is over cannot be left out.
  CHECK(differences(100, 60, "kind: constant", 6).empty());
  CHECK(differences(100, 60, "kind: constant", 7) ==
        std::vector<std::string>{shorter[0] + ", but the run is at step 7 already"});
  // Ten steps of which the last four decay: after the sixth the rate begins to fall.
  const std::string wsd = "kind: wsd, decay_tokens: 40";
  CHECK(differences(100, 200, wsd, 6).empty());
  CHECK(differences(100, 200, wsd, 7) == longer);
  CHECK(differences(100, 200, wsd, 10) == longer);
  CHECK(differences(100, 60, wsd, 2).empty());
  CHECK(differences(100, 60, wsd, 3) == shorter);
  CHECK(differences_against_done("a: {b: 1}\n", "a: {c: [1, 2]}\n") ==
        std::vector<std::string>{"a.b: 1 -> absent", "a.c: absent -> [1, 2]"});
}

TEST_CASE("what may change after a run is done is what does not change its results", "[resume]") {
  const std::string before = "train: {max_steps: 5, checkpoint: {keep: 1}}\neval: {max_tokens: 8}\n";
  CHECK(differences_against_done(before,
                                 "train: {max_steps: 5, checkpoint: {keep: 2}}\n"
                                 "eval: {max_tokens: 8, every_tokens: 1}\nlog: {every_steps: 2}\n")
            .empty());
  CHECK(differences_against_done(before,
                                 "train: {max_steps: 6, checkpoint: {keep: 1}}\neval: {max_tokens: 9}\n") ==
        std::vector<std::string>{"eval.max_tokens: 8 -> 9", "train.max_steps: 5 -> 6"});
}

TEST_CASE("the newest checkpoints and the best one are kept", "[resume]") {
  const SmallExperiment fixture({"train.checkpoint={every_tokens: 128, keep: 3}"});
  const RunSetup setup = setup_in(fixture, "kept");
  REQUIRE(run_one(fixture.run("dense"), setup).status == RunStatus::done);
  const CheckpointFolder checkpoints(setup.folder / "checkpoints");
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{12, 11, 10});
  EvalRecord early;
  early.step = 10;
  early.loss = 0.5;
  EvalRecord late;
  late.step = 12;
  late.loss = 0.7;
  CHECK(best_evaluated_step({early, late}, checkpoints.steps()) == 10);
  checkpoints.prune(1, 10);
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{12, 10});
}

TEST_CASE("a run does not go on with other data", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  int asked = 0;
  RunSetup first = setup_in(fixture, "run");
  first.hooks.stop_requested = [&] { return ++asked == 5; };
  REQUIRE(run_one(fixture.run("dense"), first).status == RunStatus::interrupted);
  CHECK(fs::exists(first.folder / "data.json"));

  DataConfig config = fixture.run("dense").config.data;
  config.text.eval_fraction = 0.1;
  const auto other = make_dataset(config);
  RunSetup changed{*other, first.folder, {}, {}};
  changed.resume = true;
  CHECK_THROWS_WITH(run_one(fixture.run("dense"), changed),
                    Contains("data have changed") && Contains("data.json"));
  CHECK(run_one(fixture.run("dense"), setup_in(fixture, "run", true)).status == RunStatus::done);
}

TEST_CASE("a run that diverges keeps the checkpoints from before, and no other", "[resume]") {
  // The first step has a rate of 0, the second one that nothing survives.
  const SmallExperiment fixture(
      {"train.optimizer.lr=1e30", "train.grad_clip=null", "train.checkpoint={every_tokens: 128, keep: 3}"});
  const RunSetup setup = setup_in(fixture, "run");
  const auto steps_after = [&](bool resume) {
    RunSetup again = setup_in(fixture, "run", resume);
    CHECK(run_one(fixture.run("moe"), again).status == RunStatus::diverged);
    return CheckpointFolder(setup.folder / "checkpoints").steps();
  };
  const std::vector<std::int64_t> steps = steps_after(false);
  REQUIRE_FALSE(steps.empty());
  CHECK(steps.back() == 1);
  CHECK(steps_after(true) == steps);
  for (const std::int64_t step : steps) {
    const CheckpointReader reader(CheckpointFolder(setup.folder / "checkpoints").path_of(step));
    for (const std::string& name : reader.parameter_names()) CHECK(reader.parameter(name).allFinite());
  }
}

TEST_CASE("the time of a run is that of all its executions", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  int asked = 0;
  RunSetup first = setup_in(fixture, "run");
  // A slow step: what comes later must not be less.
  first.hooks.stop_requested = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return ++asked == 5;
  };
  REQUIRE(run_one(fixture.run("dense"), first).status == RunStatus::interrupted);
  const double before = recover_run(first.folder).resources.wall_seconds;
  CHECK(before >= 1.0);
  REQUIRE(run_one(fixture.run("dense"), setup_in(fixture, "run", true)).status == RunStatus::done);
  CHECK(recover_run(first.folder).resources.wall_seconds > before);
}

TEST_CASE("steps that were skipped count on after a resume", "[resume]") {
  // The second step leaves weights that no loss survives.
  const SmallExperiment fixture({"train.optimizer.lr=1e30", "train.grad_clip=null", "train.non_finite=skip",
                                 "train.max_steps=30", "eval={every_tokens: null, max_tokens: 64}",
                                 kCheckpoints.front()});
  const RunResult whole = run_one(fixture.run("dense"), setup_in(fixture, "whole"));
  REQUIRE(whole.status == RunStatus::diverged);
  REQUIRE_THAT(whole.reason, Contains("10 steps before it were skipped"));
  int asked = 0;
  RunSetup first = setup_in(fixture, "stopped");
  first.hooks.stop_requested = [&] { return ++asked == 7; };
  REQUIRE(run_one(fixture.run("dense"), first).status == RunStatus::interrupted);
  CHECK(run_one(fixture.run("dense"), setup_in(fixture, "stopped", true)).reason == whole.reason);
}

TEST_CASE("a run that fails says how many steps it took and what they cost", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  RunSetup stopped = setup_in(fixture, "stopped");
  int asked = 0;
  stopped.hooks.stop_requested = [&] { return ++asked == 5; };
  REQUIRE(run_one(fixture.run("moe"), stopped).status == RunStatus::interrupted);
  RunSetup failed = setup_in(fixture, "failed");
  failed.hooks.report = [](const TrainerStatus& status, bool) {
    if (status.step == 5) throw Error("the disk is full");
  };
  REQUIRE(run_one(fixture.run("moe"), failed).status == RunStatus::failed);
  CHECK_THAT(read_file(failed.folder / "log.txt"), Contains("moe-s5 failed at step 5: the disk is full"));
  CHECK(recover_run(failed.folder).resources.train_flops ==
        recover_run(stopped.folder).resources.train_flops);
  // Gone on with from a checkpoint, and before any step.
  RunSetup again = setup_in(fixture, "stopped", true);
  again.hooks.report = [](const TrainerStatus&, bool) { throw Error("the disk is full"); };
  REQUIRE(run_one(fixture.run("moe"), again).status == RunStatus::failed);
  CHECK_THAT(read_file(again.folder / "log.txt"), Contains("moe-s5 failed at step 6: the disk is full"));
}

TEST_CASE("what is shown of a run that goes on is what it was when it stopped", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  const RunSetup whole = setup_in(fixture, "run");
  REQUIRE(run_one(fixture.run("moe"), whole).status == RunStatus::done);
  const TrainRecord last = recover_run(whole.folder).train.back();
  REQUIRE(last.step == 12);
  // As after a kill between the last checkpoint and the end: only the evaluation is left.
  RunSetup again = setup_in(fixture, "run", true);
  std::vector<TrainerStatus> shown;
  again.hooks.report = [&](const TrainerStatus& status, bool) { shown.push_back(status); };
  REQUIRE(run_one(fixture.run("moe"), again).status == RunStatus::done);
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].step == 12);
  CHECK(shown[0].tokens == 12 * 128);
  CHECK(shown[0].loss == last.loss);
  CHECK(shown[0].lr == last.lr);
  CHECK(shown[0].tokens_per_second > 0);
}

TEST_CASE("a run that goes on lets go of its checkpoint, whose space is free once it is pruned", "[resume]") {
  const SmallExperiment fixture(kCheckpoints);
  int asked = 0;
  RunSetup first = setup_in(fixture, "run");
  first.hooks.stop_requested = [&] { return ++asked == 5; };
  REQUIRE(run_one(fixture.run("moe"), first).status == RunStatus::interrupted);
  RunSetup second = setup_in(fixture, "run", true);
  int looked = 0;
  second.hooks.stop_requested = [&] {
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // the descriptor of the listing itself
      CHECK(fs::read_symlink(entry.path(), gone).string().find("checkpoints/step_") == std::string::npos);
    }
    ++looked;
    return false;
  };
  REQUIRE(run_one(fixture.run("moe"), second).status == RunStatus::done);
  CHECK(looked > 0);
}

// What is there and cannot be read now, or is not what it should be, when an execution is gone on with.
#include "core/damaged_file.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/load_execution.hpp"
#include "experiments/training/run_experiment.hpp"
#include "tests/experiments/training/outcome.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/contents.hpp"

#include <functional>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kCheckpoints{"train.checkpoint={every_tokens: 256, keep: 2}"};

RunOptions options_in(const SmallExperiment& fixture, const std::string& name) {
  RunOptions options;
  options.output_root = fixture.folder.path() / name;
  options.jobs = 1;
  options.quiet = true;
  return options;
}

// dense-s5 is done, moe-s5 stopped at its fourth step, with checkpoints of steps 2 and 4.
fs::path stopped_in_moe(const SmallExperiment& fixture, const std::string& name) {
  RunOptions options = options_in(fixture, name);
  int asked = 0;
  // Asked before a run and after each of its steps but the last.
  options.stop_requested = [&] { return ++asked > 16; };
  const ExperimentOutcome outcome = run_experiment(fixture.experiment, options);
  const ResultsFile results(outcome.results);
  REQUIRE(results.run("dense-s5").status == RunStatus::done);
  REQUIRE(results.run("moe-s5").status == RunStatus::interrupted);
  REQUIRE(CheckpointFolder(outcome.folder / "moe-s5" / "checkpoints").steps() ==
          std::vector<std::int64_t>{4, 2});
  return outcome.folder;
}

ExperimentOutcome go_on(const SmallExperiment& fixture, const fs::path& folder,
                        const std::vector<std::string>& overrides = {}, const RunSelection& selection = {}) {
  LoadOptions load;
  load.overrides = overrides;
  RunOptions options = options_in(fixture, "unused");
  options.resume = folder;
  return run_experiment(load_execution(folder, load, selection), options);
}

// Keeps a file from being read as long as it lives.
class Unreadable {
 public:
  enum class How { locked, circle, folder };
  Unreadable(fs::path path, How how) : path_(std::move(path)), aside_(path_.string() + ".aside") {
    if (how == How::locked) {
      descriptor_ = open(path_.c_str(), O_RDWR);
      REQUIRE(flock(descriptor_, LOCK_EX | LOCK_NB) == 0);
      return;
    }
    fs::rename(path_, aside_);
    if (how == How::circle) fs::create_symlink(path_.filename(), path_);
    if (how == How::folder) fs::create_directory(path_);
  }
  ~Unreadable() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    } else {
      fs::remove(path_);
      fs::rename(aside_, path_);
    }
  }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

 private:
  fs::path path_, aside_;
  int descriptor_ = -1;
};

using How = Unreadable::How;
const std::pair<How, std::string> kWays[] = {
    {How::locked, "unable to lock file"}, {How::circle, "Too many levels"}, {How::folder, "no file"}};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& e) {
    return std::string("ConfigError: ") + e.what();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a file that cannot be read now is not taken for a damaged one", "[unreadable]") {
  const SmallExperiment fixture(kCheckpoints);
  const ExperimentOutcome whole = run_experiment(fixture.experiment, options_in(fixture, "whole"));
  const fs::path folder = stopped_in_moe(fixture, "stopped");
  for (const std::string name :
       {"dense-s5/run.h5", "moe-s5/run.h5", "moe-s5/checkpoints/step_4.h5", "moe-s5/metrics.jsonl"}) {
    for (const auto& [how, reason] : kWays) {
      if (name.ends_with("jsonl") && how == How::locked) continue;  // it is read without a lock
      INFO(name << ", " << reason);
      {
        const Unreadable file(folder / name, how);
        const auto before = contents_of(folder);
        for (const std::vector<std::string>& overrides :
             {std::vector<std::string>{}, {"log.every_steps=6"}}) {
          const std::string error = error_of([&] { go_on(fixture, folder, overrides); });
          CHECK_THAT(error, Contains(name) && !Contains("ConfigError"));
          if (overrides.empty()) CHECK_THAT(error, Contains("nothing is changed"));
          if (!name.ends_with("jsonl")) CHECK_THAT(error, Contains(reason));
          CHECK((contents_of(folder) == before));
        }
      }
    }
  }
  // A selection of other runs would leave it out of the results.
  {
    const Unreadable file(folder / "dense-s5" / "run.h5", How::locked);
    const RunSelection moe{.variants = {"moe"}, .seeds = {}, .points = {}};
    CHECK_THAT(error_of([&] { go_on(fixture, folder, {}, moe); }), Contains("dense-s5/run.h5"));
    CHECK(ResultsFile(folder / "results.h5").runs().size() == 2);
  }
  CHECK(go_on(fixture, folder).failed.empty());
  for (const char* run : {"dense-s5", "moe-s5"})
    check_same(outcome_of(folder / run), outcome_of(whole.folder / run));
}

TEST_CASE("a run that is done stays done where its snapshot is damaged or cannot be read", "[unreadable]") {
  const SmallExperiment fixture(kCheckpoints);
  const fs::path folder = stopped_in_moe(fixture, "stopped");
  const fs::path snapshot = folder / "dense-s5" / "run.h5";
  const std::vector<std::string> shorter{"eval.max_tokens=64"};
  for (const auto& [how, reason] : kWays) {
    const Unreadable file(snapshot, how);
    const std::string error = error_of([&] { go_on(fixture, folder, shorter); });
    CHECK_THAT(error, Contains("dense-s5/run.h5") && Contains(reason));
    CHECK(error.find("ConfigError") == std::string::npos);
  }
  // Its last evaluation is that of the old config, and would be kept.
  fs::resize_file(snapshot, 100);
  CHECK_THAT(error_of([&] { go_on(fixture, folder, shorter); }),
             Contains("ConfigError") && Contains("dense-s5, which is done") && Contains("eval.max_tokens"));
  CHECK(go_on(fixture, folder).failed.empty());
}

TEST_CASE("a whole checkpoint of another model is refused before anything is written", "[unreadable]") {
  const SmallExperiment fixture(kCheckpoints);
  const fs::path folder = stopped_in_moe(fixture, "stopped");
  const fs::path foreign = folder / "moe-s5" / "checkpoints" / "step_12.h5";
  fs::copy_file(folder / "dense-s5" / "checkpoints" / "step_12.h5", foreign);
  const auto before = contents_of(folder);
  CHECK_THAT(error_of([&] { go_on(fixture, folder, {"log.every_steps=6"}); }),
             Contains("ConfigError: moe-s5: cannot go on from step 12") && Contains("model.ffn"));
  CHECK((contents_of(folder) == before));
  fs::remove(foreign);
  CHECK(go_on(fixture, folder).failed.empty());
}

// The program, killed again and again.
#include "core/checkpoint.hpp"
#include "core/hdf5.hpp"
#include "core/random.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/process.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// Reads every file that claims to be complete; returns how many there were.
int read_all_files(const fs::path& root) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".h5" || !entry.is_regular_file()) continue;
    INFO(entry.path());
    CHECK_NOTHROW(hdf5::Reader(entry.path()).group());
    ++files;
  }
  return files;
}

// 80 steps with a snapshot and a checkpoint at every second step.
const std::vector<std::string> kOverrides{"train.max_steps=80", "eval={every_tokens: 256, max_tokens: 64}",
                                          "train.checkpoint={every_tokens: 256, keep: 2}"};

std::vector<std::string> run_arguments(const SmallExperiment& fixture, const std::string& output) {
  std::vector<std::string> arguments{"run", (fixture.folder.path() / "test.yaml").string(), "-o",
                                     (fixture.folder.path() / output).string()};
  arguments.insert(arguments.end(), kOverrides.begin(), kOverrides.end());
  return arguments;
}

}  // namespace

TEST_CASE("killed at any time, every file is readable, and resuming ends with the same bits", "[kill]") {
  const SmallExperiment fixture;
  // A busy machine is slow to start a program, so the moments go by what a run takes here and now.
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin);
  };
  const pid_t undisturbed = start(run_arguments(fixture, "whole"));
  const fs::path first_file = fixture.folder.path() / "whole/trainer_test/latest/dense-s5/run.h5";
  while (!fs::exists(first_file) && elapsed().count() < 60)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double until_first_file = elapsed().count();
  REQUIRE(status_of(undisturbed) == 0);
  const double until_end = elapsed().count();

  const random::Stream stream(1, "moments of death");
  const fs::path latest = fixture.folder.path() / "killed" / "trainer_test" / "latest";
  int killed = 0;
  int files = 0;
  const char* wanted = std::getenv("MOELAB_KILLS");
  const std::uint64_t kills = wanted != nullptr ? std::stoull(wanted) : 20;
  for (std::uint64_t i = 0; i < kills; ++i) {
    const pid_t pid = fs::exists(latest / "source_folder.txt") ? start({"run", "--resume", latest.string()})
                                                               : start(run_arguments(fixture, "killed"));
    const double moment = until_first_file + 0.3 * stream.uniform(i) * (until_end - until_first_file);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    ::kill(pid, SIGKILL);
    killed += WIFSIGNALED(status_of(pid)) ? 1 : 0;
    if (fs::exists(fixture.folder.path() / "killed"))
      files += read_all_files(fixture.folder.path() / "killed");
  }
  CHECK(killed > 0);
  CHECK(files > static_cast<int>(kills));
  REQUIRE(status_of(start({"run", "--resume", latest.string()})) == 0);

  const ResultsFile whole(fixture.folder.path() / "whole" / "trainer_test" / "latest" / "results.h5");
  const ResultsFile resumed(latest / "results.h5");
  REQUIRE(resumed.runs().size() == 2);
  for (const RunSummary& run : whole.runs()) {
    CHECK(resumed.run(run.run).status == RunStatus::done);
    for (const std::string metric : {"train/loss", "train/grad_norm", "eval/loss"}) {
      CHECK(resumed.series(run.run, metric)->value == whole.series(run.run, metric)->value);
    }
  }
}

TEST_CASE("Ctrl-C ends a run after a checkpoint, with status 130", "[kill]") {
  const SmallExperiment fixture;
  std::vector<std::string> arguments = run_arguments(fixture, "interrupted");
  arguments.emplace_back("train.max_steps=100000");
  const pid_t pid = start(arguments);
  const fs::path run = fixture.folder.path() / "interrupted" / "trainer_test" / "latest" / "dense-s5";
  while (!fs::exists(run / "checkpoints" / "step_4.h5"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(pid, SIGINT);
  const int status = status_of(pid);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  const ResultsFile snapshot(run / "run.h5");
  CHECK(snapshot.runs().front().status == RunStatus::interrupted);
  const std::int64_t newest = CheckpointFolder(run / "checkpoints").steps().front();
  const auto reason = snapshot.reader().attribute(ResultsFile::group_of("dense-s5"), "status_reason");
  REQUIRE(reason);
  CHECK(std::get<std::string>(*reason) == fmt::format("stopped at step {}", newest));
  CHECK_NOTHROW(CheckpointReader(CheckpointFolder(run / "checkpoints").path_of(newest)).verify());
}

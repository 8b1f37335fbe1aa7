// The program, killed again and again.
#include "core/checkpoint.hpp"
#include "core/random.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/experiments/training/whole_files.hpp"
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

// Both runs are done, with the same bits.
void check_same(const ResultsFile& whole, const ResultsFile& resumed) {
  REQUIRE(resumed.runs().size() == 2);
  for (const RunSummary& run : whole.runs()) {
    CHECK(resumed.run(run.run).status == RunStatus::done);
    for (const std::string metric : {"train/loss", "train/grad_norm", "eval/loss"}) {
      CHECK(resumed.series(run.run, metric)->value == whole.series(run.run, metric)->value);
    }
  }
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
  const ResultsFile whole(fixture.folder.path() / "whole" / "trainer_test" / "latest" / "results.h5");
  const char* wanted = std::getenv("MOELAB_KILLS");
  const int kills = wanted != nullptr ? std::stoi(wanted) : 12;
  int killed = 0;
  int files = 0;
  int ended = 0;  // executions that came to their end; then a new one is begun
  bool is_at_end = false;
  for (std::uint64_t i = 0; killed < kills || !is_at_end; ++i) {
    const std::string output = fmt::format("killed_{}", ended);
    const fs::path latest = fixture.folder.path() / output / "trainer_test" / "latest";
    const pid_t pid = fs::exists(latest / "source_folder.txt") ? start({"run", "--resume", latest.string()})
                                                               : start(run_arguments(fixture, output));
    if (killed < kills) {
      const double latest_moment = until_first_file + 0.5 * (until_end - until_first_file);
      std::this_thread::sleep_for(std::chrono::duration<double>(stream.uniform(i) * latest_moment));
      ::kill(pid, SIGKILL);
    }
    const int status = status_of(pid);
    is_at_end = !WIFSIGNALED(status);
    if (fs::exists(fixture.folder.path() / output))
      files += check_whole_files(fixture.folder.path() / output);
    if (!is_at_end) {
      ++killed;
      continue;
    }
    REQUIRE(status == 0);
    check_same(whole, ResultsFile(latest / "results.h5"));
    ++ended;
  }
  CHECK(files > kills);
  WARN(fmt::format("{} kills, {} executions brought to their end, {} files read", killed, ended, files));
}

TEST_CASE("Ctrl-C, or a closed terminal, ends a run after a checkpoint with status 130", "[kill]") {
  // A terminal that is closed may say so twice, after a Ctrl-C too.
  const std::vector<int> signals =
      GENERATE(std::vector{SIGINT}, std::vector{SIGHUP}, std::vector{SIGHUP, SIGHUP},
               std::vector{SIGINT, SIGHUP}, std::vector{SIGHUP, SIGINT});
  const SmallExperiment fixture;
  std::vector<std::string> arguments = run_arguments(fixture, "interrupted");
  arguments.emplace_back("train.max_steps=100000");
  // What reads the output may have ended with the terminal, or by the same Ctrl-C.
  StartOptions options;
  options.output = "/dev/full";
  const pid_t pid = start(arguments, options);
  const fs::path run = fixture.folder.path() / "interrupted" / "trainer_test" / "latest" / "dense-s5";
  while (!fs::exists(run / "checkpoints" / "step_4.h5"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const int signal : signals) ::kill(pid, signal);
  const int status = status_of(pid);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(fs::exists(run.parent_path() / "report.html"));
  const ResultsFile snapshot(run / "run.h5");
  CHECK(snapshot.runs().front().status == RunStatus::interrupted);
  const std::int64_t newest = CheckpointFolder(run / "checkpoints").steps().front();
  const auto reason = snapshot.reader().attribute(ResultsFile::group_of("dense-s5"), "status_reason");
  REQUIRE(reason);
  CHECK(std::get<std::string>(*reason) == fmt::format("stopped at step {}", newest));
  CHECK_NOTHROW(CheckpointReader(CheckpointFolder(run / "checkpoints").path_of(newest)).verify());
}

// What goes wrong around a run: signals, folders, damaged files, a second process.
#include "core/checkpoint.hpp"
#include "core/file.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "tests/experiments/training/outcome.hpp"
#include "tests/experiments/training/run_place.hpp"
#include "tests/experiments/training/whole_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/contents.hpp"
#include "tests/support/process.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

void wait_for(const fs::path& path) {
  while (!fs::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

TEST_CASE("SIGTERM ends a run after a checkpoint, and it can be gone on with", "[faults]") {
  const RunPlace place;
  // Only a constant rate leaves the number of steps open: so the signal meets a run whose end is far away,
  // and the end can be set near the step where it stopped.
  const std::string constant = "train.schedule={kind: constant}";
  std::vector<std::string> arguments = place.arguments((place.root / "out").string(), "100000");
  arguments.insert(arguments.end(), {constant, "--jobs=1"});
  const pid_t pid = start(arguments);
  const fs::path run = place.latest("out") / "dense-s5";
  wait_for(run / "checkpoints" / "step_4.h5");
  ::kill(pid, SIGTERM);
  CHECK(exit_code_of(pid) == 130);
  check_whole_files(place.root / "out");

  const ResultsFile results(place.latest("out") / "results.h5");
  REQUIRE(results.runs().size() == 1);  // the other was not begun
  CHECK(results.runs().front().status == RunStatus::interrupted);
  const std::int64_t stopped = CheckpointFolder(run / "checkpoints").steps().front();
  const auto reason = results.reader().attribute(ResultsFile::group_of("dense-s5"), "status_reason");
  REQUIRE(reason);
  CHECK(std::get<std::string>(*reason) == fmt::format("stopped at step {}", stopped));
  CHECK(CheckpointReader(CheckpointFolder(run / "checkpoints").path_of(stopped)).training().step == stopped);

  const std::string steps = fmt::format("{}", stopped + 9);
  REQUIRE(place.resume("out", {"train.max_steps=" + steps}) == 0);
  CHECK_THAT(read_file(run / "log.txt"), Contains(fmt::format("dense-s5 starts at step {} of", stopped)));
  arguments = place.arguments((place.root / "whole").string(), steps);
  arguments.push_back(constant);
  REQUIRE(exit_code_of(start(arguments)) == 0);
  check_same_curves(place.latest("whole"), place.latest("out"));
  for (const char* name : {"dense-s5", "moe-s5"}) {
    const Outcome expected = outcome_of(place.latest("whole") / name);
    CHECK(outcome_of(place.latest("out") / name).parameters == expected.parameters);
  }
}

TEST_CASE("a second signal ends a run at once, in the midst of its step", "[faults]") {
  for (const auto& [signal, second] : {std::pair{SIGINT, SIGINT}, {SIGTERM, SIGTERM}, {SIGINT, SIGTERM}}) {
    INFO("signals " << signal << ", " << second);
    const RunPlace place;
    // A step of ten thousand micro-batches takes many seconds.
    std::vector<std::string> arguments = place.arguments((place.root / "out").string());
    arguments.insert(arguments.end(),
                     {"train.batch_tokens=1280000", "train.micro_batch_tokens=128", "--jobs=1"});
    const pid_t pid = start(arguments);
    const fs::path run = place.latest("out") / "dense-s5";
    wait_for(run / "run.h5");  // written right before the first step
    ::kill(pid, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    int status = 0;
    REQUIRE(::waitpid(pid, &status, WNOHANG) == 0);  // the first one waits for the step
    ::kill(pid, second);
    status = status_of(pid);
    CHECK(((WIFSIGNALED(status) && WTERMSIG(status) == second) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 130)));
    // The step came to no end: it would have left a checkpoint and a line in the journal.
    CHECK(CheckpointFolder(run / "checkpoints").steps().empty());
    CHECK(read_file(run / "metrics.jsonl").find("train/loss") == std::string::npos);
    CHECK(ResultsFile(run / "run.h5").runs().front().status == RunStatus::running);
    CHECK(check_whole_files(place.root / "out") > 0);
  }
}

TEST_CASE("a folder that cannot be written is told of before anything is trained", "[faults]") {
  const RunPlace place;
  std::ofstream(place.root / "file") << "in the way";
  for (const std::string& output :
       {std::string("/proc/moelab-test"), (place.root / "file" / "out").string()}) {
    CHECK(exit_code_of(start(place.arguments(output), place.told())) == 1);
    CHECK_THAT(place.said(), Contains("cannot make the folder " + output));
  }
}

TEST_CASE("a folder that is deleted during a run ends it with a message", "[faults]") {
  const RunPlace place;
  const pid_t pid = start(place.arguments((place.root / "out").string(), "100000"), place.told());
  wait_for(place.latest("out") / "dense-s5" / "checkpoints" / "step_4.h5");
  std::error_code error;
  while (fs::exists(place.root / "out")) fs::remove_all(place.root / "out", error);
  CHECK(exit_code_of(pid) == 1);
  CHECK_THAT(place.said(), Contains("error: ") && Contains("-s5") && Contains("No such file"));
}

TEST_CASE("two processes on one folder: the second is refused, the first goes on", "[faults]") {
  const RunPlace place;
  REQUIRE(place.run("whole") == 0);
  // One run at a time: the second process finds one that the first has not begun.
  std::vector<std::string> one_at_a_time = place.arguments((place.root / "out").string(), "24");
  one_at_a_time.emplace_back("--jobs=1");
  const pid_t first = start(one_at_a_time);
  wait_for(place.latest("out") / "dense-s5" / "metrics.jsonl");
  CHECK(place.resume("out") == 1);
  CHECK_THAT(place.said(), Contains("another process trains the runs of"));
  CHECK(exit_code_of(first) == 0);
  check_same_curves(place.latest("whole"), place.latest("out"));
  // At the same second each gets a folder of its own.
  const pid_t one = start(place.arguments((place.root / "both").string()));
  const pid_t two = start(place.arguments((place.root / "both").string()));
  CHECK(exit_code_of(one) == 0);
  CHECK(exit_code_of(two) == 0);
  int folders = 0;
  for (const auto& entry : fs::directory_iterator(place.root / "both" / "trainer_test")) {
    if (entry.is_symlink()) continue;
    check_same_curves(place.latest("whole"), entry.path());
    ++folders;
  }
  CHECK(folders == 2);
}

TEST_CASE("a clock that was ahead does not hide the newest execution", "[faults]") {
  const RunPlace place;
  fs::create_directories(place.root / "out" / "trainer_test" / "99990101T000000Z");
  REQUIRE(place.run("out") == 0);
  CHECK(fs::canonical(place.latest("out")).filename() != "99990101T000000Z");
  CHECK(ResultsFile(place.latest("out") / "results.h5").runs().size() == 2);
}

TEST_CASE("damaged files of a run are told of, and resuming ends with the same bits", "[faults]") {
  const RunPlace place;
  REQUIRE(place.run("whole") == 0);
  const auto damage = [](const fs::path& path, double share) {
    REQUIRE(fs::exists(path));
    fs::resize_file(path, static_cast<std::uintmax_t>(share * static_cast<double>(fs::file_size(path))));
  };
  const fs::path run = place.latest("out") / "moe-s5";
  for (const double share : {0.0, 0.5, 0.99}) {
    REQUIRE(place.run("out") == 0);
    damage(run / "run.h5", share);
    damage(CheckpointFolder(run / "checkpoints").path_of(24), share);
    damage(place.latest("out") / "results.h5", share);
    for (const char* command : {"show", "compare"})
      CHECK(exit_code_of(start({command, (place.latest("out") / "results.h5").string()}, place.told())) == 1);
    CHECK_THAT(place.said(), Contains("results.h5"));
    REQUIRE(place.resume("out") == 0);
    CHECK_THAT(place.said(), Contains("passed over") && Contains("run.h5") && Contains("step_24.h5"));
    check_same_curves(place.latest("whole"), place.latest("out"));
  }
}

TEST_CASE("a whole checkpoint of another model is refused with the difference, and nothing is lost",
          "[faults]") {
  const RunPlace place;
  REQUIRE(place.run("whole") == 0);
  REQUIRE(place.run("out") == 0);
  const fs::path run = place.latest("out") / "moe-s5";
  const CheckpointFolder checkpoints(run / "checkpoints");
  fs::remove(run / "run.h5");
  fs::copy_file(place.latest("out") / "dense-s5" / "checkpoints" / "step_24.h5", checkpoints.path_of(24),
                fs::copy_options::overwrite_existing);
  const auto before = contents_of(place.latest("out"));
  // It is not passed over for the older one: someone has put it there.
  CHECK(place.resume("out", {"log.every_steps=6"}) == 2);
  CHECK_THAT(place.said(), Contains("moe-s5: cannot go on from step 24") && Contains("model.ffn"));
  CHECK((contents_of(place.latest("out")) == before));
  // Without it, the older one serves.
  fs::remove(checkpoints.path_of(24));
  REQUIRE(place.resume("out") == 0);
  CHECK_THAT(read_file(run / "log.txt"), Contains("moe-s5 starts at step 22 of"));
  check_same_curves(place.latest("whole"), place.latest("out"));
}

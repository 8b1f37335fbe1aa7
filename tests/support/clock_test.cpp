// A clock that is set back again and again while a run is trained: the time of day of this program, and of
// its libraries, is an hour earlier at each look. Times within a run come from a clock that only goes
// forward.
#include "experiments/results/recorder.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <chrono>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

std::atomic<long> hours_back{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto code = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec -= 3600 * ++hours_back;
  return code;
}

TEST_CASE("times within a run go forward while the clock is set back, and after it was gone on with",
          "[clock]") {
  const auto before = std::chrono::system_clock::now();
  REQUIRE(std::chrono::system_clock::now() < before);  // the library's calls come here

  const SmallExperiment fixture({"log={every_steps: 1, routing_every_steps: 4, sample_tokens: 8}"});
  const fs::path folder = fixture.folder.path() / "run";
  fs::create_directories(folder);
  RunSetup setup{*fixture.data, folder, {}, {}};
  int asked = 0;
  setup.hooks.stop_requested = [&] { return ++asked == 5; };
  REQUIRE(run_one(fixture.run("moe"), setup).status == RunStatus::interrupted);
  const double first_wall_seconds = ResultsFile(folder / "run.h5").runs().front().wall_seconds;
  setup.resume = true;
  REQUIRE(run_one(fixture.run("moe"), setup).status == RunStatus::done);

  const RunData data = recover_run(folder);
  REQUIRE(data.train.size() == 12);
  double last = 0;
  for (const TrainRecord& record : data.train) {
    INFO("step " << record.step);
    CHECK(record.step_seconds > 0);
    CHECK(record.tokens_per_second > 0);
    CHECK(record.time >= last + 0.999 * record.step_seconds);
    last = record.time;
  }
  REQUIRE(data.eval.size() == 3);
  for (std::size_t i = 1; i < data.eval.size(); ++i) CHECK(data.eval[i].time >= data.eval[i - 1].time);
  CHECK(data.eval.back().time == last);
  CHECK(first_wall_seconds > 0);
  CHECK(ResultsFile(folder / "run.h5").runs().front().wall_seconds > first_wall_seconds);
}

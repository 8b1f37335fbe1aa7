#include "experiments/training/time_left.hpp"

#include "experiments/config/experiment.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <cmath>

using namespace moelab;

namespace {

// Of so many steps of ten tokens.
Run run_of(Index steps) {
  Run run;
  run.config.train.max_steps = steps;
  run.config.train.batch_tokens = 10;
  return run;
}

using Seconds = std::chrono::duration<double>;

}  // namespace

TEST_CASE("the time left goes by what this execution has trained", "[time_left]") {
  TimeLeft time({run_of(100), run_of(100)});
  CHECK(std::isnan(time.seconds_at(Seconds(20))));
  // The first goes on from step 90. Its step 91 is the first that is seen; four more take 16 s, and 5 + 100
  // are left.
  time.begin(0, 90);
  CHECK(std::isnan(time.seconds_at(Seconds(20))));
  time.update(0, 91, Seconds(20));
  CHECK(std::isnan(time.seconds_at(Seconds(30))));
  time.update(0, 95, Seconds(36));
  CHECK(time.seconds_at(Seconds(36)) == 4.0 * 105);
  // It fails: its last five steps are not taken.
  time.end(0);
  CHECK(time.seconds_at(Seconds(36)) == 4.0 * 100);
  // The second was done before.
  time.begin(1, 100);
  CHECK(time.seconds_at(Seconds(36)) == 0.0);
}

TEST_CASE("a branch costs what is left of it after its trunk", "[time_left]") {
  Run branch = run_of(50);
  branch.trunk_step = 40;
  TimeLeft time({run_of(100), branch});
  time.begin(0, 0);
  time.update(0, 10, Seconds(50));
  time.update(0, 100, Seconds(230));
  CHECK(time.seconds_at(Seconds(230)) == 2.0 * 10);
}

TEST_CASE("the time left is not told before some seconds of steps are known", "[time_left]") {
  TimeLeft time({run_of(1000)});
  time.begin(0, 0);
  // Making the model and the first evaluation took 10 s, as much as 1000 steps will: by the first step alone
  // it would be hours.
  time.update(0, 1, Seconds(10));
  CHECK(std::isnan(time.seconds_at(Seconds(10))));
  time.update(0, 101, Seconds(11));
  CHECK(std::isnan(time.seconds_at(Seconds(11))));
  time.update(0, 401, Seconds(14));
  CHECK(std::abs(time.seconds_at(Seconds(14)) - 0.01 * 599) < 1e-9);
}

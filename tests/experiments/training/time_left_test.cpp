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

}  // namespace

TEST_CASE("the time left goes by what this execution has trained", "[time_left]") {
  TimeLeft time({run_of(100), run_of(100)});
  const std::chrono::duration<double> spent(20);
  CHECK(std::isnan(time.seconds_after(spent)));
  // The first goes on from step 90 and takes 5 steps in 20 s: 4 s a step, and 5 + 100 are left.
  time.begin(0, 90);
  CHECK(std::isnan(time.seconds_after(spent)));
  time.update(0, 95);
  CHECK(time.seconds_after(spent) == 4.0 * 105);
  // It fails: its last five steps are not taken.
  time.end(0);
  CHECK(time.seconds_after(spent) == 4.0 * 100);
  // The second was done before.
  time.begin(1, 100);
  CHECK(time.seconds_after(spent) == 0.0);
}

TEST_CASE("a branch costs what is left of it after its trunk", "[time_left]") {
  Run branch = run_of(50);
  branch.trunk_step = 40;
  TimeLeft time({run_of(100), branch});
  time.begin(0, 0);
  time.update(0, 100);
  CHECK(time.seconds_after(std::chrono::duration<double>(200)) == 2.0 * 10);
}

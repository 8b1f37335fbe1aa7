#include "experiments/training/pace.hpp"

#include "tests/support/catch.hpp"

using namespace moelab;

TEST_CASE("what grows with the work done takes a twentieth of the time", "[pace]") {
  // A thousand runs of a second; the file of n runs takes n hundredths of a second.
  Pace pace;
  double now = 0, spent = 0;
  int writes = 0, first = 0;
  for (int run = 1; run <= 1000; ++run) {
    now += 1;
    if (!pace.is_due(now)) continue;
    if (writes == 0) first = run;
    const double begin = now;
    now += 0.01 * run;
    pace.took(begin, now);
    spent += now - begin;
    ++writes;
  }
  CHECK(first == 1);
  CHECK(writes > 10);
  CHECK(spent < 0.06 * now);  // a twentieth, and the last write
}

TEST_CASE("what takes no time is done each time", "[pace]") {
  Pace pace;
  for (const double now : {1.0, 2.0, 3.0}) {
    CHECK(pace.is_due(now));
    pace.took(now, now);
  }
}

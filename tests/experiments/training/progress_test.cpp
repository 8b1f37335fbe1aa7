#include "experiments/training/progress.hpp"

#include "tests/support/catch.hpp"

using namespace moelab;

TEST_CASE("Counts are shown with three digits") {
  CHECK(short_count(0) == "0");
  CHECK(short_count(999) == "999");
  CHECK(short_count(1000) == "1.00k");
  CHECK(short_count(1264) == "1.26k");
  CHECK(short_count(12'640) == "12.6k");
  CHECK(short_count(126'400) == "126k");
  CHECK(short_count(999'499) == "999k");
  CHECK(short_count(999'600) == "1.00M");
  CHECK(short_count(9'996'000) == "10.0M");
  CHECK(short_count(1'264'000) == "1.26M");
  CHECK(short_count(30'000'000'000) == "30.0G");
}

TEST_CASE("Durations are shown in two units") {
  CHECK(format_duration(48.4) == "48 s");
  CHECK(format_duration(192) == "3 min 12 s");
  CHECK(format_duration(7260) == "2 h 01 min");
}

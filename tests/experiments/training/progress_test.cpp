#include "experiments/training/progress.hpp"

#include "tests/support/catch.hpp"

#include <limits>

using namespace moelab;

namespace {

// A run whose experts have collapsed.
ProgressState collapsed() {
  ProgressState s;
  s.run = "moe-top2-s0";
  s.run_number = 3;
  s.num_runs = 12;
  s.step = 1200;
  s.num_steps = 4000;
  s.tokens = 9'830'400;
  s.loss = 3.1234;
  s.eval_loss = 3.2345;
  s.lr = 3e-4;
  s.load_cv = 1.73;
  s.dead_fraction = 0.75;
  s.tokens_per_second = 12345;
  s.seconds_left = 192;
  return s;
}

}  // namespace

TEST_CASE("A line says everything where there is room") {
  CHECK(progress_line(collapsed(), std::string::npos) ==
        "[3/12] moe-top2-s0  step 1200/4000  loss 3.1234  eval 3.2345  load_cv 1.73  dead 75%  "
        "3 min 12 s left  tokens 9.83M  12345 tok/s  lr 3.00e-04");
}

TEST_CASE("On a narrow terminal the line still says whether experts are dead") {
  for (const std::size_t width : {60, 79, 80, 100, 120}) {
    const std::string line = progress_line(collapsed(), width);
    INFO(line);
    CHECK(line.size() <= width);
    CHECK_THAT(line,
               Contains("load_cv 1.73  dead 75%") && Contains("step 1200/4000") && Contains("loss 3.1234"));
  }
  // Everything but the name and the balance goes before these do.
  ProgressState long_name = collapsed();
  long_name.run = "a-variant-of-a-sweep-with-a-long-näme-lr0.001-s0";
  const std::string line = progress_line(long_name, 79);
  CHECK(line.size() <= 79);
  CHECK_THAT(line, Contains("] a-variant") && Contains("load_cv 1.73  dead 75%"));
  CHECK(progress_line(long_name, 10) == "[3/12]   s");
  CHECK(progress_line(long_name, 0).empty());
}

TEST_CASE("What was not measured yet is a dash") {
  ProgressState s = collapsed();
  s.loss = std::numeric_limits<double>::quiet_NaN();
  s.eval_loss = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(progress_line(s, std::string::npos), Contains("step 1200/4000  loss -  eval -  load_cv"));
}

TEST_CASE("A cut name ends with a whole character") {
  ProgressState s = collapsed();
  s.run = "ää";
  s.load_cv = std::numeric_limits<double>::quiet_NaN();
  s.eval_loss = std::numeric_limits<double>::quiet_NaN();
  const std::string rest = "[3/12]   step 1200/4000  loss 3.1234";
  CHECK(progress_line(s, rest.size() + 4) == "[3/12] ää  step 1200/4000  loss 3.1234");
  CHECK(progress_line(s, rest.size() + 3) == "[3/12] ä  step 1200/4000  loss 3.1234");
}

TEST_CASE("Durations are shown in two units") {
  CHECK(format_duration(48.4) == "48 s");
  CHECK(format_duration(192) == "3 min 12 s");
  CHECK(format_duration(7260) == "2 h 01 min");
}

#include "core/schedule.hpp"

#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;
using Kind = Schedule::Kind;

namespace {

constexpr double kPi = 3.14159265358979323846;

void check(double actual, double expected) { CHECK(std::abs(actual - expected) <= 1e-12); }

}  // namespace

TEST_CASE("cosine goes from 1 to 0 over the training", "[schedule]") {
  // T = 100 steps of 64 tokens at a peak of 1e-3; a resumed run asks for step 45 again and gets the same.
  const Schedule schedule{.kind = Kind::cosine, .max_tokens = 6400};
  CHECK(std::abs(1e-3 * schedule.factor(45 * 64) - 5.782172e-4) < 1e-10);
  CHECK(std::abs(1e-3 * schedule.factor(46 * 64) - 5.626666e-4) < 1e-10);
  check(schedule.factor(0), 1);
  check(schedule.factor(3200), 0.5);
  check(schedule.factor(6400), 0);
  check(schedule.factor(7000), 0);
}

TEST_CASE("warm-up is linear from 0, and the decay starts at its end", "[schedule]") {
  const Schedule schedule{
      .kind = Kind::cosine, .max_tokens = 2000, .warmup_tokens = 400, .min_lr_ratio = 0.1};
  check(schedule.factor(0), 0);
  check(schedule.factor(100), 0.25);
  check(schedule.factor(300), 0.75);
  check(schedule.factor(400), 1);
  check(schedule.factor(1200), 0.55);  // half way: (1 + 0.1) / 2
  check(schedule.factor(500), 0.1 + 0.9 * 0.5 * (1 + std::cos(kPi * 100.0 / 1600)));  // 0.99135
  check(schedule.factor(2000), 0.1);
}

TEST_CASE("linear ends at the floor", "[schedule]") {
  const Schedule schedule{
      .kind = Kind::linear, .max_tokens = 2000, .warmup_tokens = 500, .min_lr_ratio = 0.1};
  check(schedule.factor(400), 0.8);
  check(schedule.factor(500), 1);
  check(schedule.factor(600), 0.94);
  check(schedule.factor(1900), 0.16);
  check(schedule.factor(2000), 0.1);
}

TEST_CASE("constant stays after the warm-up", "[schedule]") {
  const Schedule schedule{
      .kind = Kind::constant, .max_tokens = 1000, .warmup_tokens = 300, .min_lr_ratio = 0.1};
  check(schedule.factor(100), 1.0 / 3);
  check(schedule.factor(300), 1);
  check(schedule.factor(999), 1);
}

TEST_CASE("wsd is stable until the last tokens", "[schedule]") {
  const Schedule schedule{.kind = Kind::wsd, .max_tokens = 2000, .warmup_tokens = 400, .decay_tokens = 600};
  check(schedule.factor(200), 0.5);
  check(schedule.factor(400), 1);
  check(schedule.factor(1400), 1);
  check(schedule.factor(1500), 5.0 / 6);
  check(schedule.factor(1900), 1.0 / 6);
  check(schedule.factor(2000), 0);
}

TEST_CASE("a schedule without tokens to decay over is still defined", "[schedule]") {
  const Schedule all_warmup{
      .kind = Kind::linear, .max_tokens = 400, .warmup_tokens = 400, .min_lr_ratio = 0.1};
  check(all_warmup.factor(300), 0.75);
  check(all_warmup.factor(400), 0.1);
  const Schedule no_decay{.kind = Kind::wsd, .max_tokens = 400, .decay_tokens = 0};
  check(no_decay.factor(399), 1);
}

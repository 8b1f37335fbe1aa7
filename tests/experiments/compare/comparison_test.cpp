#include "experiments/compare/comparison.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

#include <cmath>

using namespace moelab;

namespace {

RunSummary run(const std::string& variant, std::int64_t seed, double loss, double flops = 100) {
  RunSummary s;
  s.run = variant + "-s" + std::to_string(seed);
  s.variant = variant;
  s.seed = seed;
  s.status = RunStatus::done;
  s.eval_loss_final = loss;
  s.flops_forward_per_token = flops;
  s.params_total = flops * 10;
  return s;
}

double final_loss(const RunSummary& s) { return s.eval_loss_final; }

}  // namespace

TEST_CASE("comparison pairs runs of the same seed", "[compare]") {
  // Differences 0.1, 0.2, 0.6 of seeds 0, 1, 2; seed 9 has no partner. In another order than the seeds.
  const std::vector<RunSummary> runs = {
      run("dense", 2, 3.0),   run("dense", 0, 1.0),    run("dense", 1, 2.0),   run("moe", 0, 1.1, 150),
      run("moe", 9, 50, 150), run("moe", 2, 3.6, 150), run("moe", 1, 2.2, 150)};
  const Comparison c = compare_runs(runs, final_loss, "dense", 0.95);
  REQUIRE(c.variants.size() == 2);
  const VariantResult& moe = c.variants[1];
  CHECK(moe.seeds.size() == 4);
  CHECK(moe.seeds[1].seed == 1);
  CHECK(moe.delta.num_seeds == 3);
  CHECK_THAT(moe.delta.mean, WithinAbs(0.3, 1e-12));
  CHECK_THAT(moe.delta.standard_deviation, WithinAbs(std::sqrt(0.07), 1e-12));
  const double half = 4.302652729911275 * std::sqrt(0.07 / 3);
  CHECK_THAT(moe.delta.t.low, WithinAbs(0.3 - half, 1e-8));
  CHECK_THAT(moe.relative_compute, WithinAbs(1.5, 1e-12));
  CHECK(moe.params_total == 1500);
  CHECK(std::isnan(c.variants[0].delta.mean));
  CHECK(c.variants[0].relative_compute == 1);
}

TEST_CASE("comparison of two seeds shows the difference without an interval", "[compare]") {
  const std::vector<RunSummary> runs = {run("a", 0, 1), run("a", 1, 2), run("b", 0, 2), run("b", 1, 4)};
  const Comparison c = compare_runs(runs, final_loss, "", 0.95);
  CHECK(c.baseline == 0);
  CHECK(c.variants[1].delta.mean == 1.5);
  CHECK(std::isnan(c.variants[1].delta.t.low));
  CHECK(std::isnan(c.variants[1].delta.p_value));
}

TEST_CASE("comparison counts runs that did not end well", "[compare]") {
  std::vector<RunSummary> runs = {run("a", 0, 1), run("b", 0, 2), run("b", 1, 3), run("b", 2, std::nan(""))};
  runs[2].status = RunStatus::diverged;
  const Comparison c = compare_runs(runs, final_loss, "a", 0.95);
  CHECK(c.variants[1].seeds.size() == 1);
  CHECK(c.variants[1].num_incomplete == 2);
  CHECK(c.variants[1].mean == 2);
}

TEST_CASE("comparison of a sweep takes the baseline of the same point", "[compare]") {
  std::vector<RunSummary> runs = {run("a", 0, 1), run("b", 0, 2), run("a", 0, 10), run("b", 0, 13)};
  for (std::size_t i = 0; i < 4; ++i)
    runs[i].sweep_point = i < 2 ? R"({"train.optimizer.lr":0.001})" : R"({"train.optimizer.lr":0.003})";
  const Comparison c = compare_runs(runs, final_loss, "a", 0.95);
  REQUIRE(c.variants.size() == 4);
  CHECK(c.variants[0].label == "a lr=0.001");
  CHECK(c.variants[1].delta.mean == 1);
  CHECK(c.variants[3].delta.mean == 3);
  CHECK(std::isnan(c.variants[2].delta.mean));
}

TEST_CASE("comparison errors name what there is", "[compare]") {
  REQUIRE_THROWS_WITH(compare_runs({}, final_loss, "", 0.95), Contains("no runs"));
  const std::vector<RunSummary> runs = {run("a", 0, 1), run("b", 0, 2)};
  REQUIRE_THROWS_WITH(compare_runs(runs, final_loss, "c", 0.95), Contains("'c'") && Contains("a, b"));
  const std::vector<RunSummary> twice = {run("a", 0, 1), run("a", 0, 2)};
  REQUIRE_THROWS_WITH(compare_runs(twice, final_loss, "", 0.95), Contains("two runs of seed 0"));
}

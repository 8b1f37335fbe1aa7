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

namespace {

// A grid over the learning rate for all, and a number of experts for the mixture alone.
std::vector<RunSummary> sweep_with_settings_of_the_mixture() {
  std::vector<RunSummary> runs = {run("dense", 0, 1.0113), run("dense", 0, 0.7507),
                                  run("moe", 0, 0.9, 200), run("moe", 0, 0.6758, 200),
                                  run("moe", 0, 0.8, 200), run("moe", 0, 0.7, 200)};
  const char* points[] = {R"({"train.optimizer.lr":"1e-4"})",
                          R"({"train.optimizer.lr":"3e-2"})",
                          R"({"train.optimizer.lr":"1e-4","model.ffn.experts.count":"4"})",
                          R"({"train.optimizer.lr":"3e-2","model.ffn.experts.count":"4"})",
                          R"({"train.optimizer.lr":"1e-4","model.ffn.experts.count":"8"})",
                          R"({"train.optimizer.lr":"3e-3","model.ffn.experts.count":"8"})"};
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].sweep_point = points[i];
  runs[0].flops_forward_per_token = 50;
  return runs;
}

}  // namespace

TEST_CASE("comparison of a sweep passes over settings that only the variant has", "[compare]") {
  const auto runs = sweep_with_settings_of_the_mixture();
  const Comparison c = compare_runs(runs, final_loss, "dense", 0.95);
  REQUIRE(c.variants.size() == 6);
  // The learning rate decides: 0.6758 - 0.7507, and not 0.6758 - 1.0113.
  CHECK(c.variants[3].label == "moe lr=3e-2 count=4");
  CHECK_THAT(c.variants[3].delta.mean, WithinAbs(-0.0749, 1e-12));
  CHECK_THAT(c.variants[2].delta.mean, WithinAbs(-0.1113, 1e-12));
  CHECK_THAT(c.variants[4].delta.mean, WithinAbs(-0.2113, 1e-12));
  CHECK(c.variants[3].relative_compute == 2);
  CHECK(c.variants[2].relative_compute == 4);
  CHECK(baseline_name(c) == "dense");
  // No dense run has lr=3e-3: no difference at all, rather than one to another learning rate.
  CHECK(std::isnan(c.variants[5].delta.mean));
  CHECK(std::isnan(c.variants[5].relative_compute));
  CHECK(baseline_of(c.variants[5], c) == nullptr);
  CHECK(without_baseline(c) == std::vector<std::string>{"moe lr=3e-3 count=8"});
}

TEST_CASE("comparison with a point of the baseline that is named", "[compare]") {
  const Comparison c = compare_runs(sweep_with_settings_of_the_mixture(), final_loss, "dense lr=3e-2", 0.95);
  CHECK(baseline_name(c) == "dense lr=3e-2");
  CHECK(without_baseline(c).empty());
  CHECK_THAT(c.variants[0].delta.mean, WithinAbs(1.0113 - 0.7507, 1e-12));
  CHECK_THAT(c.variants[5].delta.mean, WithinAbs(0.7 - 0.7507, 1e-12));
}

TEST_CASE("sweep points whose settings end with the same name are kept apart", "[compare]") {
  std::vector<RunSummary> runs = {run("base", 0, 1), run("base", 0, 2)};
  runs[0].sweep_point = R"({"model.ffn.experts.d_ff":"16"})";
  runs[1].sweep_point = R"({"model.ffn.shared.d_ff":"16"})";
  const Comparison c = compare_runs(runs, final_loss, "", 0.95);
  REQUIRE(c.variants.size() == 2);
  CHECK(c.variants[0].label == "base experts.d_ff=16");
  CHECK(c.variants[1].label == "base shared.d_ff=16");
  CHECK(c.variants[1].mean == 2);
}

TEST_CASE("sweep points are told apart whatever their values look like", "[compare]") {
  std::vector<RunSummary> runs = {run("a", 0, 1), run("a", 0, 2), run("a", 1, 3)};
  runs[0].sweep_point = R"({"x.p":"1","x.q":"2"})";
  runs[1].sweep_point = runs[2].sweep_point = R"({"x.p":"1 q=2"})";
  const std::vector<std::string> labels = labels_of(runs);
  CHECK(labels[0] == "a p=1 q=2");
  CHECK(labels[1] != labels[0]);
  CHECK(labels[1] == labels[2]);
}

TEST_CASE("comparison errors name what there is", "[compare]") {
  REQUIRE_THROWS_WITH(compare_runs({}, final_loss, "", 0.95), Contains("no runs"));
  const std::vector<RunSummary> runs = {run("a", 0, 1), run("b", 0, 2)};
  REQUIRE_THROWS_WITH(compare_runs(runs, final_loss, "c", 0.95), Contains("'c'") && Contains("a, b"));
  const std::vector<RunSummary> twice = {run("a", 0, 1), run("a", 0, 2)};
  REQUIRE_THROWS_WITH(compare_runs(twice, final_loss, "", 0.95), Contains("two runs of seed 0"));
}

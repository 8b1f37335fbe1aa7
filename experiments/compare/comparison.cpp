#include "experiments/compare/comparison.hpp"

#include "core/error.hpp"
#include "experiments/results/sweep_point.hpp"

#include <algorithm>
#include <cmath>

namespace moelab {

namespace {

std::string listed(const std::vector<VariantResult>& variants) {
  std::string text;
  for (const VariantResult& v : variants) text += (text.empty() ? "" : ", ") + v.label;
  return text;
}

// Index of the baseline, and whether it stands for all its points.
void find_baseline(Comparison& c, const std::string& wanted) {
  const std::string& variant = wanted.empty() ? c.variants.front().variant : wanted;
  auto it = std::ranges::find(c.variants, variant, &VariantResult::variant);
  c.same_point = it != c.variants.end();
  if (!c.same_point) it = std::ranges::find(c.variants, wanted, &VariantResult::label);
  require(it != c.variants.end(), "[compare] there is no baseline '{}'; the variants are {}", wanted,
          listed(c.variants));
  c.baseline = static_cast<std::size_t>(it - c.variants.begin());
}

// Mean of the measured values of a field over runs.
double mean_field(const std::vector<const RunSummary*>& runs, double RunSummary::*field) {
  std::vector<double> values;
  for (const RunSummary* r : runs)
    if (std::isfinite(r->*field)) values.push_back(r->*field);
  return mean(values);
}

std::vector<double> values_of(const std::vector<SeedValue>& seeds) {
  std::vector<double> values;
  for (const SeedValue& s : seeds) values.push_back(s.value);
  return values;
}

Delta paired_delta(const VariantResult& variant, const VariantResult& baseline, double confidence) {
  std::vector<double> differences;
  for (const SeedValue& s : variant.seeds) {
    const auto other = std::ranges::find(baseline.seeds, s.seed, &SeedValue::seed);
    if (other != baseline.seeds.end()) differences.push_back(s.value - other->value);
  }
  Delta d;
  d.num_seeds = differences.size();
  d.mean = mean(differences);
  d.standard_deviation = standard_deviation(differences);
  d.t = t_interval(differences, confidence);
  d.bootstrap = bootstrap_interval(differences, confidence);
  d.p_value = t_test_p_value(differences);
  return d;
}

void fill_variant(VariantResult& v, const std::vector<const RunSummary*>& runs, double confidence) {
  std::ranges::stable_sort(v.seeds, {}, &SeedValue::seed);
  const std::vector<double> values = values_of(v.seeds);
  v.mean = mean(values);
  v.standard_deviation = standard_deviation(values);
  v.t = t_interval(values, confidence);
  v.params_total = mean_field(runs, &RunSummary::params_total);
  v.params_active = mean_field(runs, &RunSummary::params_active);
  v.flops_forward_per_token = mean_field(runs, &RunSummary::flops_forward_per_token);
  v.active_compute_ratio = mean_field(runs, &RunSummary::active_compute_ratio);
  v.active_compute_ratio_measured = mean_field(runs, &RunSummary::active_compute_ratio_measured);
  v.tokens_per_second = mean_field(runs, &RunSummary::tokens_per_second);
  v.wall_seconds = mean_field(runs, &RunSummary::wall_seconds);
}

}  // namespace

const VariantResult* baseline_of(const VariantResult& variant, const Comparison& comparison) {
  const VariantResult& baseline = comparison.variants[comparison.baseline];
  if (!comparison.same_point) return &baseline;
  if (variant.variant == baseline.variant) return &variant;
  std::vector<const VariantResult*> candidates;
  std::vector<SweepSettings> points;
  for (const VariantResult& v : comparison.variants) {
    if (v.variant != baseline.variant) continue;
    candidates.push_back(&v);
    points.push_back(sweep_settings(v.sweep_point));
  }
  const auto index = same_point(sweep_settings(variant.sweep_point), points);
  return index ? candidates[*index] : nullptr;
}

std::vector<std::string> without_baseline(const Comparison& comparison) {
  std::vector<std::string> labels;
  for (const VariantResult& v : comparison.variants)
    if (baseline_of(v, comparison) == nullptr) labels.push_back(v.label);
  return labels;
}

std::string baseline_name(const Comparison& comparison) {
  const VariantResult& baseline = comparison.variants[comparison.baseline];
  const auto of_it = std::ranges::count(comparison.variants, baseline.variant, &VariantResult::variant);
  return comparison.same_point && of_it > 1 ? baseline.variant : baseline.label;
}

Comparison compare_runs(std::span<const RunSummary> runs,
                        const std::function<double(const RunSummary&)>& value_of, const std::string& baseline,
                        double confidence) {
  require(!runs.empty(), "[compare] there are no runs");
  require(confidence > 0 && confidence < 1, "[compare] confidence={} is not between 0 and 1", confidence);
  Comparison c;
  c.confidence = confidence;
  std::vector<std::vector<const RunSummary*>> members;
  const std::vector<std::string> labels = labels_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& r = runs[i];
    const std::string& label = labels[i];
    const auto it = std::ranges::find_if(c.variants, [&](const VariantResult& v) {
      return v.variant == r.variant && v.sweep_point == r.sweep_point;
    });
    const auto index = static_cast<std::size_t>(it - c.variants.begin());
    if (it == c.variants.end()) {
      VariantResult& v = c.variants.emplace_back();
      v.label = label;
      v.variant = r.variant;
      v.sweep_point = r.sweep_point;
      members.emplace_back();
    }
    members[index].push_back(&r);
    VariantResult& v = c.variants[index];
    const double value = value_of(r);
    if (std::isfinite(value) && r.status == RunStatus::done) {
      require(std::ranges::find(v.seeds, r.seed, &SeedValue::seed) == v.seeds.end(),
              "[compare] variant {} has two runs of seed {}", label, r.seed);
      v.seeds.push_back({r.run, r.seed, value});
    } else {
      ++v.num_incomplete;
    }
  }
  for (std::size_t i = 0; i < c.variants.size(); ++i) fill_variant(c.variants[i], members[i], confidence);
  find_baseline(c, baseline);
  std::vector<double> p_values;
  for (VariantResult& v : c.variants) {
    const VariantResult* base = baseline_of(v, c);
    if (base != nullptr) v.relative_compute = v.flops_forward_per_token / base->flops_forward_per_token;
    if (base != nullptr && base != &v) v.delta = paired_delta(v, *base, confidence);
    p_values.push_back(v.delta.p_value);
  }
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < adjusted.size(); ++i) c.variants[i].delta.p_value_holm = adjusted[i];
  return c;
}

hdf5::Group variants_group(const Comparison& comparison) {
  hdf5::Group g;
  g.name = "variants";
  if (comparison.variants.empty()) return g;
  g.attribute("baseline", baseline_name(comparison));
  g.attribute("metric", comparison.metric);
  g.attribute("confidence", comparison.confidence);
  const auto column = [&](const char* name, const char* units, const char* long_name, const auto& value_of) {
    std::vector<std::remove_cvref_t<decltype(value_of(comparison.variants[0]))>> values;
    for (const VariantResult& v : comparison.variants) values.push_back(value_of(v));
    g.series(name, "variant", std::move(values), {units, long_name});
  };
  using V = VariantResult;
  column("variant", "", "variant, and its sweep point", [](const V& v) { return v.label; });
  column("baseline", "", "what it is compared with; empty: nothing", [&](const V& v) {
    const V* base = baseline_of(v, comparison);
    return base == nullptr ? std::string() : base->label;
  });
  column("num_seeds", "1", "runs with a value",
         [](const V& v) { return static_cast<std::int64_t>(v.seeds.size()); });
  column("num_incomplete", "1", "runs without one",
         [](const V& v) { return static_cast<std::int64_t>(v.num_incomplete); });
  column("eval_loss_mean", "nat", "mean held-out loss", [](const V& v) { return v.mean; });
  column("eval_loss_std", "nat", "its standard deviation over seeds",
         [](const V& v) { return v.standard_deviation; });
  column("eval_loss_ci_low", "nat", "Student-t interval of the mean, low end",
         [](const V& v) { return v.t.low; });
  column("eval_loss_ci_high", "nat", "Student-t interval of the mean, high end",
         [](const V& v) { return v.t.high; });
  column("delta_vs_baseline", "nat", "mean paired difference to the baseline",
         [](const V& v) { return v.delta.mean; });
  column("delta_ci_low", "nat", "Student-t interval of the difference, low end",
         [](const V& v) { return v.delta.t.low; });
  column("delta_ci_high", "nat", "Student-t interval of the difference, high end",
         [](const V& v) { return v.delta.t.high; });
  column("delta_p_value", "1", "two-sided paired t-test, Holm-corrected",
         [](const V& v) { return v.delta.p_value_holm; });
  column("relative_compute", "1", "forward FLOPs per token / those of the baseline",
         [](const V& v) { return v.relative_compute; });
  column("params_total", "1", "parameters", [](const V& v) { return v.params_total; });
  column("params_active", "1", "parameters that a token uses", [](const V& v) { return v.params_active; });
  return g;
}

}  // namespace moelab

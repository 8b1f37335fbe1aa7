#include "experiments/compare/figures.hpp"

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "experiments/compare/text_table.hpp"

#include <cmath>
#include <functional>
#include <utility>

#include <fmt/ranges.h>

namespace moelab {

namespace {

// Every figure of a variant, with a name for programs.
const std::vector<std::pair<const char*, std::function<double(const VariantResult&)>>>& figures() {
  using V = VariantResult;
  static const std::vector<std::pair<const char*, std::function<double(const V&)>>> all = {
      {"num_seeds", [](const V& v) { return static_cast<double>(v.seeds.size()); }},
      {"num_incomplete", [](const V& v) { return static_cast<double>(v.num_incomplete); }},
      {"mean", [](const V& v) { return v.mean; }},
      {"std", [](const V& v) { return v.standard_deviation; }},
      {"ci_low", [](const V& v) { return v.t.low; }},
      {"ci_high", [](const V& v) { return v.t.high; }},
      {"delta_num_seeds", [](const V& v) { return static_cast<double>(v.delta.num_seeds); }},
      {"delta", [](const V& v) { return v.delta.mean; }},
      {"delta_std", [](const V& v) { return v.delta.standard_deviation; }},
      {"delta_ci_low", [](const V& v) { return v.delta.t.low; }},
      {"delta_ci_high", [](const V& v) { return v.delta.t.high; }},
      {"delta_bootstrap_low", [](const V& v) { return v.delta.bootstrap.low; }},
      {"delta_bootstrap_high", [](const V& v) { return v.delta.bootstrap.high; }},
      {"p_value", [](const V& v) { return v.delta.p_value; }},
      {"p_value_holm", [](const V& v) { return v.delta.p_value_holm; }},
      {"params_total", [](const V& v) { return v.params_total; }},
      {"params_active", [](const V& v) { return v.params_active; }},
      {"flops_forward_per_token", [](const V& v) { return v.flops_forward_per_token; }},
      {"relative_compute", [](const V& v) { return v.relative_compute; }},
      {"active_compute_ratio", [](const V& v) { return v.active_compute_ratio; }},
      {"active_compute_ratio_measured", [](const V& v) { return v.active_compute_ratio_measured; }},
      {"tokens_per_second", [](const V& v) { return v.tokens_per_second; }},
      {"wall_seconds", [](const V& v) { return v.wall_seconds; }},
      {"compute_efficiency", [](const V& v) { return v.compute_efficiency.mean; }},
      {"compute_efficiency_low", [](const V& v) { return v.compute_efficiency.t.low; }},
      {"compute_efficiency_high", [](const V& v) { return v.compute_efficiency.t.high; }},
      {"wall_clock_efficiency", [](const V& v) { return v.wall_clock_efficiency.mean; }},
      {"wall_clock_efficiency_low", [](const V& v) { return v.wall_clock_efficiency.t.low; }},
      {"wall_clock_efficiency_high", [](const V& v) { return v.wall_clock_efficiency.t.high; }},
      {"active_parameter_efficiency", [](const V& v) { return v.active_parameter_efficiency.mean; }},
      {"active_parameter_efficiency_low", [](const V& v) { return v.active_parameter_efficiency.t.low; }},
      {"active_parameter_efficiency_high", [](const V& v) { return v.active_parameter_efficiency.t.high; }},
      {"total_parameter_efficiency", [](const V& v) { return v.total_parameter_efficiency.mean; }},
      {"total_parameter_efficiency_low", [](const V& v) { return v.total_parameter_efficiency.t.low; }},
      {"total_parameter_efficiency_high", [](const V& v) { return v.total_parameter_efficiency.t.high; }},
  };
  return all;
}

std::string baseline_label(const VariantResult& v, const Comparison& c) {
  const VariantResult* base = baseline_of(v, c);
  return base == nullptr ? std::string() : base->label;
}

}  // namespace

const std::vector<std::string>& figure_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& [name, value] : figures()) result.emplace_back(name);
    return result;
  }();
  return names;
}

double figure(const VariantResult& variant, const std::string& name) {
  for (const auto& [known, value] : figures())
    if (name == known) return value(variant);
  fail("[compare] there is no figure '{}'; the figures are {}", name, fmt::join(figure_names(), ", "));
}

std::string figures_as_csv(const Comparison& c) {
  TextTable t;
  t.header = {"variant", "baseline"};
  for (const auto& [name, value] : figures()) t.header.emplace_back(name);
  for (const VariantResult& v : c.variants) {
    std::vector<std::string>& row = t.rows.emplace_back();
    row.push_back(v.label);
    row.push_back(baseline_label(v, c));
    for (const auto& [name, value] : figures()) row.push_back(exact(value(v)));
  }
  return to_csv(t);
}

std::string figures_as_json(const Comparison& c) {
  nlohmann::ordered_json variants = nlohmann::ordered_json::array();
  const auto number = [](double x) {
    return std::isnan(x) ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(x);
  };
  for (const VariantResult& v : c.variants) {
    nlohmann::ordered_json entry = {{"variant", v.label}, {"baseline", nullptr}};
    if (const VariantResult* base = baseline_of(v, c)) entry["baseline"] = base->label;
    nlohmann::ordered_json seeds = nlohmann::ordered_json::array();
    for (const SeedValue& s : v.seeds)
      seeds.push_back({{"run", s.run}, {"seed", s.seed}, {"value", s.value}});
    entry["seeds"] = seeds;
    for (const auto& [name, value] : figures()) entry[name] = number(value(v));
    entry["compute_efficiency_not_reached"] = v.compute_efficiency.num_not_reached;
    entry["wall_clock_efficiency_not_reached"] = v.wall_clock_efficiency.num_not_reached;
    entry["active_parameter_efficiency_not_reached"] = v.active_parameter_efficiency.num_not_reached;
    entry["total_parameter_efficiency_not_reached"] = v.total_parameter_efficiency.num_not_reached;
    variants.push_back(entry);
  }
  const nlohmann::ordered_json document = {{"metric", c.metric},
                                           {"at", c.at},
                                           {"confidence", c.confidence},
                                           {"baseline", baseline_name(c)},
                                           {"variants", variants}};
  return json_text(document, 2) + "\n";
}

}  // namespace moelab

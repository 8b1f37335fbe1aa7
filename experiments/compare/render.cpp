#include "experiments/compare/render.hpp"

#include "core/error.hpp"
#include "core/visible.hpp"
#include "experiments/compare/figures.hpp"
#include "experiments/compare/other_data.hpp"
#include "experiments/compare/text_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

constexpr int kDigits = 4;              // of a loss
constexpr std::size_t kSeedsShown = 5;  // more would make the table too wide

bool any(const Comparison& c, const std::function<bool(const VariantResult&)>& holds) {
  return std::ranges::any_of(c.variants, holds);
}

std::string interval_text(double centre, Interval interval, int digits) {
  if (std::isnan(interval.low)) return with_digits(centre, digits);
  return fmt::format("{} [{}, {}]", with_digits(centre, digits), with_digits(interval.low, digits),
                     with_digits(interval.high, digits));
}

std::string signed_interval_text(const Delta& delta) {
  if (std::isnan(delta.mean)) return "-";
  const std::string text = interval_text(delta.mean, delta.t, kDigits);
  return delta.mean > 0 ? "+" + text : text;
}

std::string p_text(double p) {
  if (std::isnan(p)) return "-";
  return p < 1e-4 ? "<0.0001" : with_digits(p, 4);
}

std::string ratio_text(const Ratio& ratio) {
  if (ratio.values.empty()) return ratio.num_not_reached > 0 ? "not reached" : "-";
  const std::string text = interval_text(ratio.mean, ratio.t, 2);
  return ratio.num_not_reached > 0 ? fmt::format("{} ({} not reached)", text, ratio.num_not_reached) : text;
}

std::string active_text(const VariantResult& v) {
  if (std::isnan(v.active_compute_ratio_measured)) return with_digits(v.active_compute_ratio, 3);
  return with_digits(v.active_compute_ratio, 3) + " / " + with_digits(v.active_compute_ratio_measured, 3);
}

// Whether some mixture's loss lies between those of two dense sizes.
bool has_parameter_efficiency(const Comparison& c) {
  return any(c, [](const VariantResult& v) {
    return !v.active_parameter_efficiency.values.empty() || !v.total_parameter_efficiency.values.empty();
  });
}

}  // namespace

TextTable comparison_table(const Comparison& c) {
  const bool show_seeds = !any(c, [](const VariantResult& v) { return v.seeds.size() > kSeedsShown; });
  const bool show_efficiency = any(c, [](const VariantResult& v) {
    return !v.compute_efficiency.values.empty() || v.compute_efficiency.num_not_reached > 0;
  });
  const bool show_sizes = has_parameter_efficiency(c);
  const bool show_p = any(c, [](const VariantResult& v) { return !std::isnan(v.delta.p_value); });
  const std::string baseline = baseline_name(c);
  TextTable t;
  t.header = {"variant", c.metric};
  if (show_seeds) t.header.emplace_back("each seed");
  t.header.push_back("vs " + baseline + (baseline == c.variants[c.baseline].label ? "" : " (same point)"));
  if (show_p) t.header.emplace_back("p (Holm)");
  for (const char* name : {"params", "active", "compute", "FFN active", "tokens/s"})
    t.header.emplace_back(name);
  if (show_efficiency) t.header.emplace_back("compute gain");
  if (show_efficiency) t.header.emplace_back("time gain");
  if (show_sizes) t.header.emplace_back("active gain");
  if (show_sizes) t.header.emplace_back("params gain");
  for (const VariantResult& v : c.variants) {
    std::vector<std::string>& row = t.rows.emplace_back();
    row.push_back(v.label);
    std::string loss = with_digits(v.mean, kDigits);
    if (!std::isnan(v.standard_deviation)) loss += " ± " + with_digits(v.standard_deviation, kDigits);
    row.push_back(loss);
    if (show_seeds) {
      std::string seeds;
      for (const SeedValue& s : v.seeds) seeds += (seeds.empty() ? "" : " ") + with_digits(s.value, kDigits);
      row.push_back(seeds.empty() ? "-" : seeds);
    }
    row.push_back(signed_interval_text(v.delta));
    if (show_p) row.push_back(p_text(v.delta.p_value_holm));
    row.push_back(with_si_prefix(v.params_total));
    row.push_back(with_si_prefix(v.params_active));
    row.push_back(std::isnan(v.relative_compute) ? "-" : with_digits(v.relative_compute, 3) + "x");
    row.push_back(active_text(v));
    row.push_back(with_si_prefix(v.tokens_per_second));
    if (show_efficiency) row.push_back(ratio_text(v.compute_efficiency));
    if (show_efficiency) row.push_back(ratio_text(v.wall_clock_efficiency));
    if (show_sizes) row.push_back(ratio_text(v.active_parameter_efficiency));
    if (show_sizes) row.push_back(ratio_text(v.total_parameter_efficiency));
  }
  return t;
}

std::vector<std::string> notes_on_data(const Comparison& c) {
  std::vector<std::string> lines;
  for (const VariantResult& v : c.variants) {
    if (!is_metric_of_data(c.metric, v.other_data)) continue;
    const bool is_text = std::ranges::any_of(
        v.other_data, [](const std::string& key) { return key.starts_with("data.tokenizer."); });
    const bool bytes = is_text && !is_metric_of_data("eval/bits_per_byte", v.other_data);
    lines.push_back(
        fmt::format("NOT THE SAME DATA: {} has other data than {} ({}). "
                    "Its {} says nothing about the models{}.",
                    v.label, baseline_of(v, c)->label, fmt::join(v.other_data, ", "), c.metric,
                    bytes ? "; eval/bits_per_byte does" : ""));
  }
  return lines;
}

std::vector<std::string> comparison_notes(const Comparison& c) {
  std::vector<std::string> lines;
  if (!any(c, [](const VariantResult& v) { return !v.seeds.empty(); }))
    lines.push_back(fmt::format("No run that has ended has a value of {} {}: there is nothing to compare.",
                                c.metric, c.at));
  const std::vector<std::string> alone = without_baseline(c);
  if (!alone.empty())
    lines.push_back(fmt::format(
        "NOT COMPARED, as no one point of the baseline {} has their settings: {}. A point that is named with "
        "--baseline is compared with all.",
        baseline_name(c), fmt::join(alone, ", ")));
  for (std::string& note : notes_on_data(c)) lines.push_back(std::move(note));
  const double percent = 100 * c.confidence;
  lines.push_back(fmt::format("{} {}: mean ± standard deviation over seeds. Differences are paired by seed.",
                              c.metric, c.at));
  const bool has_interval = any(c, [](const VariantResult& v) { return !std::isnan(v.delta.t.low); });
  if (has_interval)
    lines.push_back(fmt::format(
        "[low, high]: {:g} % Student-t interval. p: two-sided paired t-test, Holm-corrected.", percent));
  if (any(c, [&](const VariantResult& v) {
        return baseline_of(v, c) != &v && v.delta.num_seeds > 0 && v.delta.num_seeds < kSeedsForInterval;
      }))
    lines.push_back(fmt::format(
        "Fewer than {} common seeds give no interval: such a difference may be noise.", kSeedsForInterval));
  for (const VariantResult& v : c.variants)
    if (v.num_incomplete > 0)
      lines.push_back(fmt::format("{}: {} of {} runs did not end or have no such value, and are left out.",
                                  v.label, v.num_incomplete, v.num_incomplete + v.seeds.size()));
  lines.emplace_back(
      "compute: forward FLOPs per token, relative. FFN active: share of the FFN FLOPs that run, planned / "
      "measured.");
  if (any(c, [](const VariantResult& v) { return !v.compute_efficiency.values.empty(); }))
    lines.emplace_back(
        "compute gain, time gain: what the baseline needs / what the variant needs for the same loss, "
        "interpolated on the curves.");
  if (has_parameter_efficiency(c))
    lines.emplace_back(
        "active gain, params gain: parameters that a dense model needs for the loss of the mixture / "
        "those of the mixture, active and in all, interpolated between the dense variants.");
  return lines;
}

TableFormat table_format(const std::string& name) {
  if (name == "table") return TableFormat::table;
  if (name == "md") return TableFormat::markdown;
  if (name == "csv") return TableFormat::csv;
  if (name == "json") return TableFormat::json;
  if (name == "latex") return TableFormat::latex;
  throw ConfigError(fmt::format("'{}' is no format; use table, md, csv, json or latex", name));
}

std::string render(const Comparison& comparison, TableFormat format, std::size_t columns) {
  if (format == TableFormat::csv) return figures_as_csv(comparison);
  if (format == TableFormat::json) return figures_as_json(comparison);
  const TextTable table = comparison_table(comparison);
  const std::vector<std::string> notes = comparison_notes(comparison);
  std::string text;
  switch (format) {
    case TableFormat::latex:
      text = to_latex(table);
      for (const std::string& note : notes) text += "% " + latex_escaped(note) + "\n";
      break;
    case TableFormat::markdown:
      text = to_markdown(table) + "\n";
      for (const std::string& note : notes) text += markdown_escaped(note) + "  \n";
      break;
    default:
      text = to_terminal(table, columns) + "\n";
      for (const std::string& note : notes) text += visible_line(note) + "\n";
  }
  return text;
}

}  // namespace moelab

#include "experiments/report/report.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/render.hpp"
#include "experiments/plot/figures.hpp"
#include "experiments/report/config_diff.hpp"
#include "experiments/report/html.hpp"
#include "experiments/results/describe.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moelab::report {

namespace {

bool has_metric(const ResultsFile& file, const std::string& metric) {
  return std::ranges::any_of(file.runs(),
                             [&](const RunSummary& r) { return file.series(r.run, metric).has_value(); });
}

std::string comparison_section(const Comparison& comparison) {
  std::string notes;
  for (const std::string& note : comparison_notes(comparison)) notes += "<li>" + escaped(note) + "</li>\n";
  return section("comparison", "Comparison",
                 table(comparison_table(comparison)) + "<ul class=\"notes\">\n" + notes + "</ul>\n");
}

std::string figure(const ResultsFile& file, const std::string& kind, const plot::FigureOptions& options,
                   const std::string& caption) {
  try {
    const plot::Drawing drawing = plot::make_figure(file, kind, options);
    const char* tag = drawing.width > plot::kFigureWidth ? "<figure class=\"wide\">" : "<figure>";
    return tag + plot::to_svg(drawing) + "<figcaption>" + escaped(caption) + "</figcaption></figure>\n";
  } catch (const Error&) {
    return {};  // the experiment has nothing of that kind: a dense model has no routing
  }
}

std::string figures_section(const ResultsFile& file, const std::string& metric) {
  std::string html;
  plot::FigureOptions options;
  options.metric = metric;
  html += figure(file, "loss", options, metric + " over tokens; band: lowest to highest seed");
  options.x = "flops";
  html += figure(file, "loss", options, metric + " over training FLOPs");
  options.x = "seconds";
  html += figure(file, "loss", options, metric + " over training time");
  html += figure(file, "bars", options, metric + " by variant");
  html += figure(file, "isoflop", options, metric + " at equal training compute");
  html += figure(file, "load", options, "Load of each expert over training");
  html += figure(file, "load_cv", options, "Variation of the load");
  html += figure(file, "entropy", options, "Router entropy");
  html += figure(file, "domains", options, "Experts by domain, against the uniform line");
  html += figure(file, "coactivation", options, "Pairs of experts");
  html += figure(file, "saturation", options, "How early the routing was settled");
  html += figure(file, "tokens", options, "Sample text");
  if (html.empty()) return {};
  return section("figures", "Figures", "<div class=\"figures\">\n" + html + "</div>\n");
}

std::string runs_section(const ResultsFile& file) {
  std::string html = table(runs_table(file.runs()));
  for (const RunSummary& r : file.runs()) {
    const std::string reason = file.reader().text_attribute(ResultsFile::group_of(r.run), "status_reason");
    if (!reason.empty())
      html += "<p>" + escaped(r.run + ": " + to_string(r.status) + ": " + reason) + "</p>\n";
  }
  return section("runs", "Runs", html);
}

std::string health_section(const ResultsFile& file) {
  std::vector<std::string> runs;
  for (const RunSummary& r : file.runs()) runs.push_back(r.run);
  const TextTable health = health_table(file, runs);
  if (health.rows.empty()) return {};
  return section("routing", "Health of the routing",
                 "<p>At the last record; dead: experts without a token.</p>\n" + table(health));
}

// Of the runs of a variant at a sweep point, which differ in the seed alone, the first.
struct LabelledRun {
  std::string label;
  const RunSummary* run;
};
std::vector<LabelledRun> one_run_a_variant(const ResultsFile& file) {
  const std::vector<std::string> labels = labels_of(file.runs());
  std::vector<LabelledRun> runs;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (std::ranges::find(runs, labels[i], &LabelledRun::label) == runs.end())
      runs.push_back({labels[i], &file.runs()[i]});
  return runs;
}

std::string accounting_section(const ResultsFile& file) {
  std::string html;
  for (const auto& [label, r] : one_run_a_variant(file)) {
    const std::string group = ResultsFile::group_of(r->run) + "/accounting";
    const TextTable rows = accounting_table(file.reader(), group);
    if (rows.rows.empty()) continue;
    html +=
        folded(fmt::format("{}: {} parameters, {} active, {} forward FLOPs per token", label,
                           with_si_prefix(r->params_total), with_si_prefix(r->params_active),
                           with_si_prefix(r->flops_forward_per_token)),
               "<p>" + escaped(file.reader().text_attribute(group, "conventions")) + "</p>\n" + table(rows));
  }
  return html.empty() ? html : section("accounting", "Accounting", html);
}

std::string differences_section(const ResultsFile& file, const Comparison& comparison) {
  const std::vector<LabelledRun> runs = one_run_a_variant(file);
  const auto config_of = [&](const std::string& label) {
    const RunSummary& r = *std::ranges::find(runs, label, &LabelledRun::label)->run;
    return file.reader().text(ResultsFile::group_of(r.run) + "/config_resolved");
  };
  std::string html;
  for (const VariantResult& v : comparison.variants) {
    const VariantResult* base = baseline_of(v, comparison);
    // Points of the baseline are shown against its first; a variant without a point of its own too.
    if (base == nullptr || base == &v) base = &comparison.variants[comparison.baseline];
    if (base == &v) continue;
    std::string lines;
    for (const DiffLine& line : line_diff(config_of(base->label), config_of(v.label))) {
      const std::string text = escaped(std::string(1, line.mark) + " " + line.text) + "\n";
      const char* kind = line.mark == '+' ? "added" : "removed";
      lines += line.mark == ' ' ? text : std::string("<span class=\"") + kind + "\">" + text + "</span>";
    }
    html += folded(v.label + " against " + base->label, "<pre>" + lines + "</pre>\n");
  }
  return html.empty() ? html : section("differences", "What the variants differ in", html);
}

std::string provenance_section(const ResultsFile& file) {
  std::string html = "<div class=\"scroll\"><table><tbody>\n";
  for (const hdf5::Attribute& a : file.reader().group("provenance").attributes)
    if (std::holds_alternative<std::string>(a.value))
      html += "<tr><td>" + escaped(a.name) + "</td><td style=\"text-align:left\">" +
              escaped(std::get<std::string>(a.value)) + "</td></tr>\n";
  html += "</tbody></table></div>\n";
  if (!file.experiment().config_source.empty())
    html += folded("The experiment file", preformatted(file.experiment().config_source));
  std::string overrides;
  for (const std::string& o : file.experiment().overrides) overrides += o + "\n";
  if (!overrides.empty()) html += folded("Overrides", preformatted(overrides));
  return section("provenance", "Provenance", html);
}

std::string sentence_of(const VariantResult& v, const Comparison& c) {
  const std::string& base = baseline_of(v, c)->label;
  const Delta& d = v.delta;
  const std::string change = fmt::format("{} by {:.4f}", d.mean < 0 ? "lower" : "higher", std::abs(d.mean));
  const std::string compute = std::isnan(v.relative_compute)
                                  ? ""
                                  : fmt::format(" at {:.2f}x its compute per token", v.relative_compute);
  if (std::isnan(d.t.low))
    return fmt::format("{} is {} than {}{}, from {} common seed{}: too few to tell it from noise.", v.label,
                       change, base, compute, d.num_seeds, d.num_seeds == 1 ? "" : "s");
  const std::string interval = fmt::format("{:g} % interval {:+.4f} to {:+.4f}, p = {:.2g} after Holm",
                                           100 * c.confidence, d.t.low, d.t.high, d.p_value_holm);
  // The interval is of this difference alone; among many some leave out 0 by chance.
  if (!(d.p_value_holm < 1 - c.confidence))
    return fmt::format("{} shows no clear difference from {}{} ({}, {} seeds).", v.label, base, compute,
                       interval, d.num_seeds);
  return fmt::format("{} is {} than {}{} ({}, {} seeds).", v.label, change, base, compute, interval,
                     d.num_seeds);
}

std::string verdict_of(const Comparison& c) {
  std::string text;
  for (const VariantResult& v : c.variants) {
    if (std::isnan(v.delta.mean)) continue;
    text += (text.empty() ? c.metric + ": " : " ") + sentence_of(v, c);
  }
  if (!text.empty()) return text;
  if (c.variants.size() == 1 && !std::isnan(c.variants[0].mean))
    return fmt::format("{}: {} reaches {:.4f}; there is nothing to compare it with.", c.metric,
                       c.variants[0].label, c.variants[0].mean);
  return "No verdict: no variant and the baseline have finished runs of a common seed.";
}

std::string metric_of(const ResultsFile& file) {
  return file.experiment().metric.empty() ? "eval/loss" : file.experiment().metric;
}

}  // namespace

std::string verdict(const ResultsFile& file) {
  if (file.runs().empty() || !has_metric(file, metric_of(file)))
    return "No verdict: no run has been evaluated.";
  return verdict_of(compare_file(file));
}

std::string to_html(const ResultsFile& file) {
  const ExperimentInfo& e = file.experiment();
  std::string body = "<h1>" + escaped(e.name) + "</h1>\n";
  if (!e.description.empty()) body += "<p class=\"question\">" + escaped(e.description) + "</p>\n";
  body += "<p class=\"verdict\">" + escaped(verdict(file)) + "</p>\n";
  const std::string metric = metric_of(file);
  if (!file.runs().empty()) {
    if (has_metric(file, metric)) {
      const Comparison comparison = compare_file(file);
      body += comparison_section(comparison) + figures_section(file, metric);
      body += health_section(file) + accounting_section(file);
      body += differences_section(file, comparison);
    }
    body += runs_section(file);
  }
  body += provenance_section(file);
  return page(e.name, body);
}

void write_report(const std::filesystem::path& path, const ResultsFile& file) {
  replace_file(path, to_html(file));
}

}  // namespace moelab::report

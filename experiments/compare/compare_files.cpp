#include "experiments/compare/compare_files.hpp"

#include "core/error.hpp"
#include "experiments/compare/efficiency.hpp"
#include "experiments/compare/other_data.hpp"
#include "experiments/compare/text_table.hpp"
#include "experiments/results/provenance.hpp"
#include "experiments/results/short_names.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace moelab {

namespace {

// A run of one of the files, under the name that its variant has in the comparison.
struct Member {
  const ResultsFile* file;
  RunSummary summary;
};

// Names of the files for people: of results.h5 and run.h5 that of their folder, of others their own, and as
// much of the folders above as tells them apart.
std::vector<std::string> short_names(std::span<const ResultsFile> files) {
  std::vector<std::vector<std::string>> names;
  for (const ResultsFile& file : files) {
    const auto path = std::filesystem::absolute(file.path()).lexically_normal();
    const bool by_folder = path.stem() == "results" || path.stem() == "run";
    std::vector<std::string>& parts = names.emplace_back();
    for (const auto& part : by_folder ? path.parent_path() : path) parts.push_back(part.string());
    if (!by_folder) parts.back() = path.stem().string();
  }
  return shortest_names(names, "/");
}

// Names of variants that several files have.
std::set<std::string> shared_variants(std::span<const ResultsFile> files) {
  std::map<std::string, std::set<const ResultsFile*>> owners;
  for (const ResultsFile& f : files)
    for (const RunSummary& r : f.runs()) owners[r.variant].insert(&f);
  std::set<std::string> shared;
  for (const auto& [variant, where] : owners)
    if (where.size() > 1) shared.insert(variant);
  return shared;
}

double flops_per_token(const RunSummary& run) {
  const double trained = run.train_flops / run.tokens;
  return std::isfinite(trained) ? trained : 3 * run.flops_forward_per_token;
}

// Linear interpolation of y over rising x; NaN outside.
double interpolate(const std::vector<double>& x, const std::vector<double>& y, double at) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == at) return y[i];
    if (x[i] > at)
      return i == 0 ? kNotMeasured : std::lerp(y[i - 1], y[i], (at - x[i - 1]) / (x[i] - x[i - 1]));
  }
  return kNotMeasured;
}

// Losses and bits: what is better when lower.
bool is_loss(const std::string& metric) {
  return metric.ends_with("/loss") || metric.starts_with("eval/loss/") || metric.ends_with("/bits_per_byte");
}

// What is better when higher.
bool is_accuracy(const std::string& metric) { return metric.ends_with("/accuracy"); }

double value_at(const Series& series, const RunSummary& run, const std::string& metric, const At& at) {
  switch (at.kind) {
    case At::Kind::final:
      return series.value.empty() ? kNotMeasured : series.value.back();
    case At::Kind::best: {
      double best = kNotMeasured;
      for (const double v : series.value) best = is_loss(metric) ? std::fmin(best, v) : std::fmax(best, v);
      return best;
    }
    case At::Kind::tokens:
      return interpolate(series.tokens, series.value, at.value);
    case At::Kind::flops:
      return interpolate(series.tokens, series.value, at.value / flops_per_token(run));
  }
  return kNotMeasured;
}

std::string in_words(const At& at, const std::string& metric) {
  switch (at.kind) {
    case At::Kind::final:
      return "at the end";
    case At::Kind::best:
      return is_loss(metric) ? "at its lowest" : "at its highest";
    case At::Kind::tokens:
      return "at " + with_si_prefix(at.value) + " tokens";
    case At::Kind::flops:
      return "at " + with_si_prefix(at.value) + " training FLOPs";
  }
  return {};
}

CostCurve flops_curve(const Series& series, const RunSummary& run) {
  CostCurve curve{series.tokens, series.value};
  for (double& cost : curve.cost) cost *= flops_per_token(run);
  return curve;
}

const Member& member_of(const std::vector<Member>& members, const std::string& run,
                        const std::string& variant) {
  return *std::ranges::find_if(
      members, [&](const Member& m) { return m.summary.run == run && m.summary.variant == variant; });
}

void add_other_data(Comparison& c, const std::vector<Member>& members) {
  const auto data_of = [&](const VariantResult& v, const SeedValue& seed) {
    const Member& m = member_of(members, seed.run, v.variant);
    const hdf5::Reader& reader = m.file->reader();
    const std::string config = ResultsFile::group_of(m.summary.run) + "/config_resolved";
    const std::string provenance = ResultsFile::group_of(m.summary.run) + "/provenance";
    RunOnData data;
    if (reader.has(config)) data.config = reader.text(config);
    if (reader.has(provenance)) data.checksum = reader.text_attribute(provenance, kDataChecksum);
    return data;
  };
  for (VariantResult& v : c.variants) {
    const VariantResult* base = baseline_of(v, c);
    if (base == nullptr || base == &v) continue;
    for (const SeedValue& seed : v.seeds) {
      const auto other = std::ranges::find(base->seeds, seed.seed, &SeedValue::seed);
      if (other == base->seeds.end()) continue;
      v.other_data = other_data(data_of(v, seed), data_of(*base, *other));
      if (!v.other_data.empty()) break;
    }
  }
}

// For each seed, the size at which the dense variants would reach the mixture's loss.
Ratio parameter_efficiency(const Comparison& c, const VariantResult& mixture, double VariantResult::*size) {
  std::vector<double> ratios;
  for (const SeedValue& mine : mixture.seeds) {
    std::vector<std::pair<double, double>> dense;
    for (const VariantResult& v : c.variants) {
      if (v.is_mixture || !(v.*size > 0)) continue;
      const auto same = std::ranges::find(v.seeds, mine.seed, &SeedValue::seed);
      if (same != v.seeds.end()) dense.emplace_back(v.*size, same->value);
    }
    if (!dense.empty()) ratios.push_back(cost_to_reach(size_curve(dense), mine.value) / mixture.*size);
  }
  return mean_ratio(ratios, c.confidence);
}

void add_parameter_efficiency(Comparison& c, const std::vector<Member>& members) {
  for (VariantResult& v : c.variants) {
    v.is_mixture = std::ranges::any_of(members, [&](const Member& m) {
      return m.summary.variant == v.variant && m.summary.sweep_point == v.sweep_point &&
             m.file->reader().has(ResultsFile::group_of(m.summary.run) + "/routing/layer");
    });
  }
  for (VariantResult& v : c.variants) {
    if (!v.is_mixture) continue;
    v.active_parameter_efficiency = parameter_efficiency(c, v, &VariantResult::params_active);
    v.total_parameter_efficiency = parameter_efficiency(c, v, &VariantResult::params_total);
  }
}

void add_efficiency(Comparison& c, const std::vector<Member>& members) {
  for (VariantResult& v : c.variants) {
    const VariantResult* base = baseline_of(v, c);
    if (base == nullptr || base == &v) continue;
    std::vector<double> compute, seconds;
    for (const SeedValue& s : v.seeds) {
      const auto other = std::ranges::find(base->seeds, s.seed, &SeedValue::seed);
      if (other == base->seeds.end()) continue;
      const Member& one = member_of(members, s.run, v.variant);
      const Member& two = member_of(members, other->run, base->variant);
      const auto mine = one.file->series(s.run, c.metric), theirs = two.file->series(other->run, c.metric);
      compute.push_back(cost_ratio(flops_curve(*theirs, two.summary), flops_curve(*mine, one.summary)));
      seconds.push_back(cost_ratio({theirs->time, theirs->value}, {mine->time, mine->value}));
    }
    v.compute_efficiency = mean_ratio(compute, c.confidence);
    v.wall_clock_efficiency = mean_ratio(seconds, c.confidence);
  }
}

}  // namespace

At parse_at(const std::string& text) {
  if (text == "final") return {At::Kind::final, 0};
  if (text == "best") return {At::Kind::best, 0};
  const std::size_t equals = text.find('=');
  const std::string kind = text.substr(0, equals);
  if (equals != std::string::npos && (kind == "tokens" || kind == "flops")) {
    const std::string number = text.substr(equals + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc() && end == number.data() + number.size() && std::isfinite(value) && value > 0)
      return {kind == "tokens" ? At::Kind::tokens : At::Kind::flops, value};
  }
  throw ConfigError(
      fmt::format("'{}' is no place on a curve; use final, best, tokens=1e6 or flops=1e13", text));
}

Comparison compare_files(std::span<const ResultsFile> files, const CompareOptions& options) {
  require(!files.empty(), "[compare] no file is given");
  const ExperimentInfo& first = files[0].experiment();
  const std::set<std::string> shared = shared_variants(files);
  const std::vector<std::string> names = short_names(files);
  std::vector<Member> members;
  std::vector<RunSummary> runs;
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (RunSummary run : files[f].runs()) {
      if (shared.contains(run.variant)) run.variant = names[f] + ":" + run.variant;
      runs.push_back(run);
      members.push_back({&files[f], std::move(run)});
    }
  }
  const auto is_variant_or_label = [&](const std::string& name) {
    return std::ranges::find(runs, name, &RunSummary::variant) != runs.end() ||
           std::ranges::count(labels_of(runs), name) > 0;
  };
  std::string baseline = options.baseline.empty() ? first.baseline : options.baseline;
  // Where several files have it, it is that of the first.
  if (!baseline.empty() && !is_variant_or_label(baseline) && is_variant_or_label(names[0] + ":" + baseline))
    baseline = names[0] + ":" + baseline;
  // The baseline that the experiment names may have no run yet; one that the caller names must be there.
  if (options.baseline.empty() && !is_variant_or_label(baseline)) baseline.clear();
  const std::string metric = !options.metric.empty() ? options.metric
                             : !first.metric.empty() ? first.metric
                                                     : "eval/loss";
  if (options.at.kind == At::Kind::best && !is_loss(metric) && !is_accuracy(metric))
    throw ConfigError(
        fmt::format("best has no meaning for {}: it is the lowest of a loss or of bits per byte, the highest "
                    "of an accuracy",
                    metric));
  std::map<std::pair<std::string, std::string>, double> values;  // by variant and run
  bool any = false;
  for (const Member& m : members) {
    const auto series = m.file->series(m.summary.run, metric);
    const double value = series ? value_at(*series, m.summary, metric, options.at) : kNotMeasured;
    any = any || series.has_value();
    values[{m.summary.variant, m.summary.run}] = value;
  }
  // Runs that failed before their first evaluation have no metric at all, and are told of in the notes.
  const bool none_was_evaluated = std::ranges::none_of(
      members, [](const Member& m) { return m.file->series(m.summary.run, "eval/loss").has_value(); });
  require(any || options.metric.empty() || none_was_evaluated, "[compare] no run has the metric '{}'",
          metric);
  Comparison c = compare_runs(
      runs,
      [&](const RunSummary& r) {
        return values.at({r.variant, r.run});
      },
      baseline, options.confidence.value_or(first.confidence));
  c.metric = metric;
  c.at = in_words(options.at, metric);
  add_other_data(c, members);
  if (options.efficiency && is_loss(metric)) {
    add_efficiency(c, members);
    add_parameter_efficiency(c, members);
  }
  return c;
}

double common_flops(const ResultsFile& file, const std::string& metric) {
  double smallest = kNotMeasured;
  for (const RunSummary& run : file.runs()) {
    const auto series = file.series(run.run, metric);
    if (run.status != RunStatus::done || !series || series->tokens.empty()) continue;
    smallest = std::fmin(smallest, series->tokens.back() * flops_per_token(run));
  }
  // So that rounding leaves no curve short of it.
  return smallest * (1 - 1e-12);
}

Comparison compare_file(const ResultsFile& file) { return compare_files({&file, 1}, {}); }

}  // namespace moelab

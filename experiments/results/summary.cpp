#include "experiments/results/summary.hpp"

#include "core/damaged_file.hpp"
#include "experiments/results/run_store.hpp"
#include "experiments/results/short_names.hpp"
#include "experiments/results/sweep_point.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace moelab {

namespace {

double mean_of_measured(const std::vector<double>& values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double v : values) {
    if (std::isnan(v)) continue;
    sum += v;
    ++count;
  }
  return count == 0 ? kNotMeasured : sum / static_cast<double>(count);
}

}  // namespace

std::vector<std::string> labels_of(std::span<const RunSummary> runs) {
  std::vector<SweepSettings> points;
  std::map<std::string, std::string> short_keys;
  for (const RunSummary& r : runs) {
    points.push_back(sweep_settings(r.sweep_point));
    for (const auto& [key, value] : points.back()) short_keys[key];
  }
  std::vector<std::vector<std::string>> keys;
  for (const auto& [key, shortened] : short_keys) keys.push_back(parts_of(key, '.'));
  const std::vector<std::string> shortened = shortest_names(keys, ".");
  std::size_t next = 0;
  for (auto& [key, name] : short_keys) name = shortened[next++];

  std::vector<std::string> labels;
  std::map<std::string, std::size_t> first_with;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string label = runs[i].variant;
    for (const auto& [key, value] : points[i])
      label += " " + (key.empty() ? value : short_keys[key] + "=" + value);
    // A value may look like another setting: "a=1 b=2".
    const RunSummary& first = runs[first_with.try_emplace(label, i).first->second];
    if (first.variant != runs[i].variant || first.sweep_point != runs[i].sweep_point)
      label = runs[i].variant + " " + runs[i].sweep_point;
    labels.push_back(std::move(label));
  }
  return labels;
}

const std::vector<SummaryField>& summary_fields() {
  using S = RunSummary;
  static const std::vector<SummaryField> fields = {
      {"eval_loss_final", "nat", "held-out loss at the end", &S::eval_loss_final},
      {"eval_loss_best", "nat", "lowest held-out loss", &S::eval_loss_best},
      {"bits_per_byte_final", "bit", "held-out loss per byte of text at the end", &S::bits_per_byte_final},
      {"accuracy_final", "1", "share of the held-out sequences whose class is right, at the end",
       &S::accuracy_final},
      {"train_loss_final", "nat", "training loss at the last logged step", &S::train_loss_final},
      {"steps", "1", "optimizer steps done", &S::steps},
      {"tokens", "token", "training tokens seen", &S::tokens},
      {"params_total", "1", "parameters", &S::params_total},
      {"params_active", "1", "parameters that a token uses", &S::params_active},
      {"flops_forward_per_token", "1", "forward FLOPs of a token", &S::flops_forward_per_token},
      {"train_flops", "1", "training FLOPs, 3 x forward", &S::train_flops},
      {"active_compute_ratio", "1", "FFN FLOPs as planned / of all experts", &S::active_compute_ratio},
      {"active_compute_ratio_measured", "1", "FFN FLOPs as routed / of all experts",
       &S::active_compute_ratio_measured},
      {"wall_seconds", "s", "time of the run", &S::wall_seconds},
      {"tokens_per_second", "token/s", "training throughput", &S::tokens_per_second},
      {"peak_rss_bytes", "byte", "largest memory of the process", &S::peak_rss_bytes},
  };
  return fields;
}

RunSummary summarise(const RunData& data) {
  RunSummary s;
  s.run = data.info.name;
  s.variant = data.info.variant;
  s.seed = static_cast<std::int64_t>(data.info.seed);
  s.sweep_point = data.info.sweep_point;
  s.status = data.status;
  if (!data.eval.empty()) {
    s.eval_loss_final = data.eval.back().loss;
    s.bits_per_byte_final = data.eval.back().bits_per_byte;
    s.accuracy_final = data.eval.back().accuracy;
    for (const EvalRecord& r : data.eval) s.eval_loss_best = std::fmin(s.eval_loss_best, r.loss);
    s.steps = static_cast<double>(data.eval.back().step);
    s.tokens = static_cast<double>(data.eval.back().tokens);
  }
  std::vector<double> ratios;
  if (!data.train.empty()) {
    const TrainRecord& last = data.train.back();
    s.train_loss_final = last.loss;
    s.steps = std::fmax(s.steps, static_cast<double>(last.step));
    s.tokens = std::fmax(s.tokens, static_cast<double>(last.tokens));
    s.tokens_per_second = static_cast<double>(last.tokens) / last.time;
    for (const TrainRecord& r : data.train) ratios.push_back(r.active_compute_ratio);
  }
  s.active_compute_ratio_measured = mean_of_measured(ratios);
  const AccountingTable& a = data.info.accounting;
  s.params_total = static_cast<double>(a.params_total);
  s.params_active = a.params_active;
  s.flops_forward_per_token = a.flops_forward_per_token;
  s.active_compute_ratio = a.active_compute_ratio;
  s.train_flops = std::isnan(data.resources.train_flops) ? 3 * a.flops_forward_per_token * s.tokens
                                                         : data.resources.train_flops;
  s.wall_seconds = data.resources.wall_seconds;
  s.peak_rss_bytes = data.resources.peak_rss_bytes;
  return s;
}

hdf5::Group summary_group(std::span<const RunSummary> summaries) {
  hdf5::Group g;
  g.name = "summary";
  const auto strings = [&](const char* name, std::string RunSummary::*member, const char* long_name) {
    std::vector<std::string> values;
    for (const RunSummary& s : summaries) values.push_back(s.*member);
    g.series(name, "run", std::move(values), {"", long_name});
  };
  if (summaries.empty()) return g;
  strings("run", &RunSummary::run, "name of the run");
  strings("variant", &RunSummary::variant, "name of the variant");
  std::vector<std::int64_t> seeds;
  std::vector<std::uint8_t> status;
  for (const RunSummary& s : summaries) {
    seeds.push_back(s.seed);
    status.push_back(static_cast<std::uint8_t>(s.status));
  }
  g.series("seed", "run", std::move(seeds), {"1", "seed"});
  strings("sweep_point", &RunSummary::sweep_point, "swept values, JSON");
  g.series("status", "run", std::move(status), {"", "how the run ended"});
  hdf5::set_flags(g.datasets.back(), run_status_names());
  for (const SummaryField& f : summary_fields()) {
    std::vector<double> values;
    for (const RunSummary& s : summaries) values.push_back(s.*f.member);
    g.series(f.name, "run", std::move(values), {f.units, f.long_name});
  }
  return g;
}

std::vector<RunSummary> read_summaries(const hdf5::Reader& reader) {
  std::vector<RunSummary> summaries;
  if (!reader.has("summary/run")) return summaries;
  const auto runs = reader.read<std::string>("summary/run");
  const auto variants = reader.read<std::string>("summary/variant");
  const auto points = reader.read<std::string>("summary/sweep_point");
  const auto seeds = reader.read<std::int64_t>("summary/seed");
  const auto status = reader.read<std::uint8_t>("summary/status");
  const auto require_as_long = [&](const char* name, std::size_t size) {
    require_whole(size == runs.size(), "[results] {} has {} runs and {} values of {}", reader.path().string(),
                  runs.size(), size, name);
  };
  require_as_long("variant", variants.size());
  require_as_long("sweep_point", points.size());
  require_as_long("seed", seeds.size());
  require_as_long("status", status.size());
  summaries.resize(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    require_whole(status[i] < run_status_names().size(), "[results] run {} of {} has the unknown status {}",
                  runs[i], reader.path().string(), status[i]);
    // It becomes the name of files and folders.
    require_whole(!runs[i].empty() && runs[i] == sanitised_name(runs[i]),
                  "[results] {} has a run '{}', which is no name of a run", reader.path().string(), runs[i]);
    summaries[i].run = runs[i];
    summaries[i].variant = variants[i];
    summaries[i].sweep_point = points[i];
    summaries[i].seed = seeds[i];
    summaries[i].status = static_cast<RunStatus>(status[i]);
  }
  for (const SummaryField& f : summary_fields()) {
    if (!reader.has(std::string("summary/") + f.name)) continue;
    const auto values = reader.read<double>(std::string("summary/") + f.name);
    require_as_long(f.name, values.size());
    for (std::size_t i = 0; i < runs.size(); ++i) summaries[i].*f.member = values[i];
  }
  return summaries;
}

}  // namespace moelab

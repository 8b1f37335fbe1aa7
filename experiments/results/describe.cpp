#include "experiments/results/describe.hpp"

#include "core/error.hpp"
#include "core/visible.hpp"
#include "experiments/compare/compare_files.hpp"
#include "experiments/compare/text_table.hpp"
#include "experiments/results/run_store.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moelab {

namespace {

namespace fs = std::filesystem;

std::string indented(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += "  " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

// Runs that the execution has to train, where a results file is that of one and this can be told; else those
// that are in it.
std::size_t num_planned(const ResultsFile& file) {
  try {
    const fs::path& path = file.path();
    if (path.filename() == "results.h5")
      return std::max(RunStore::open(path.parent_path()).record().runs.size(), file.runs().size());
  } catch (const std::exception&) {
    // No folder of an execution, or its record is damaged: `moelab run --resume` says so.
  }
  return file.runs().size();
}

// The metric that is compared and its mean of each variant, as many as the line has room for; empty where no
// run has a value.
std::string means_of(const ResultsFile& file, std::size_t room) {
  CompareOptions options;
  options.metric = file.experiment().metric;
  options.efficiency = false;
  const auto has_metric = [&](const RunSummary& run) {
    return file.series(run.run, options.metric).has_value();
  };
  if (std::ranges::none_of(file.runs(), has_metric)) return {};
  const std::vector<VariantResult> variants = compare_files({&file, 1}, options).variants;
  std::string text = "; " + visible_line(options.metric);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string mean =
        fmt::format("  {} {}", visible_line(variants[i].label), with_digits(variants[i].mean, 4));
    const std::string rest = fmt::format("  and {} more", variants.size() - i);
    const std::size_t needed = text.size() + mean.size() + (i + 1 < variants.size() ? rest.size() : 0);
    if (i > 0 && needed > room) return text + rest;
    text += mean;
  }
  return text;
}

// The same, or why there are none: the runs are there all the same.
std::string means_or_reason(const ResultsFile& file, std::size_t room) {
  try {
    return means_of(file, room);
  } catch (const Error& error) {
    return fmt::format("; no means: {}", visible_line(error.what()));
  }
}

std::string line_of(const fs::path& path, std::size_t width) {
  try {
    const ResultsFile file(path);
    const auto done = std::ranges::count(file.runs(), RunStatus::done, &RunSummary::status);
    std::string text = fmt::format("  {}: {} of {} runs done", visible_line(file.experiment().name), done,
                                   num_planned(file));
    text += means_or_reason(file, width - std::min(width, text.size()));
    return fmt::format("{}\n{}\n", path.string(), text);
  } catch (const Error& error) {
    return fmt::format("{}\n  not readable: {}\n", path.string(), error.what());
  }
}

}  // namespace

TextTable runs_table(const std::vector<RunSummary>& runs) {
  const bool show_accuracy =
      std::ranges::any_of(runs, [](const RunSummary& r) { return !std::isnan(r.accuracy_final); });
  TextTable t;
  t.header = {"run", "status", "steps", "tokens", "eval loss", "best", "bits/byte"};
  if (show_accuracy) t.header.emplace_back("accuracy");
  for (const char* name : {"params", "active", "FFN active", "tokens/s", "time"}) t.header.emplace_back(name);
  for (const RunSummary& r : runs) {
    std::vector<std::string>& row = t.rows.emplace_back();
    row = {r.run,
           to_string(r.status),
           with_si_prefix(r.steps),
           with_si_prefix(r.tokens),
           with_digits(r.eval_loss_final, 4),
           with_digits(r.eval_loss_best, 4),
           with_digits(r.bits_per_byte_final, 4)};
    if (show_accuracy) row.push_back(with_digits(r.accuracy_final, 4));
    row.push_back(with_si_prefix(r.params_total));
    row.push_back(with_si_prefix(r.params_active));
    row.push_back(with_digits(std::isnan(r.active_compute_ratio_measured) ? r.active_compute_ratio
                                                                          : r.active_compute_ratio_measured,
                              3));
    row.push_back(with_si_prefix(r.tokens_per_second));
    row.push_back(std::isnan(r.wall_seconds) ? "-" : with_si_prefix(r.wall_seconds) + " s");
  }
  return t;
}

TextTable health_table(const ResultsFile& file, const std::vector<std::string>& runs) {
  TextTable t;
  t.header = {"run", "layer", "experts", "load CV", "max violation", "dead", "dropped", "router entropy"};
  t.num_keys = 2;
  for (const std::string& run : runs)
    for (const LayerHealth& h : routing_health(file, run))
      t.rows.push_back(
          {run, std::to_string(h.layer), std::to_string(h.num_experts), with_digits(h.load_cv, 3),
           with_digits(h.max_violation, 3),
           std::isnan(h.dead_fraction)
               ? "-"
               : fmt::format("{:.0f}", h.dead_fraction * static_cast<double>(h.num_experts)),
           std::isnan(h.fraction_dropped) ? "-" : with_digits(100 * h.fraction_dropped, 2) + " %",
           std::isfinite(h.router_entropy) ? with_digits(h.router_entropy, 3) + " nat" : "-"});
  return t;
}

TextTable accounting_table(const hdf5::Reader& reader, const std::string& group) {
  TextTable t;
  t.header = {"module", "kind", "params", "active", "forward FLOPs/token"};
  if (!reader.has(group + "/module")) return t;
  const auto modules = reader.read<std::string>(group + "/module");
  const auto kinds = reader.read<std::string>(group + "/kind");
  const auto totals = reader.read<double>(group + "/params_total");
  const auto active = reader.read<double>(group + "/params_active");
  const auto flops = reader.read<double>(group + "/flops_forward_per_token");
  for (const std::size_t size : {kinds.size(), totals.size(), active.size(), flops.size()})
    require(size == modules.size(), "[results] {} of {} has {} modules and {} values", group,
            reader.path().string(), modules.size(), size);
  for (std::size_t i = 0; i < modules.size(); ++i)
    t.rows.push_back({modules[i], kinds[i], with_si_prefix(totals[i]), with_si_prefix(active[i]),
                      with_si_prefix(flops[i])});
  return t;
}

std::vector<fs::path> find_results(const fs::path& where) {
  if (fs::is_regular_file(where)) return {where};
  require(fs::is_directory(where), "[ls] there is no file or folder {}", where.string());
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::recursive_directory_iterator(where, fs::directory_options::skip_permission_denied)) {
    if (!entry.is_regular_file()) continue;
    const fs::path& path = entry.path();
    if (path.filename() == "results.h5") found.push_back(path);
    if (path.filename() == "run.h5" && !fs::exists(path.parent_path().parent_path() / "results.h5"))
      found.push_back(path);
  }
  std::ranges::sort(found);
  return found;
}

std::string list_results(const fs::path& where, std::size_t width) {
  std::string text;
  for (const fs::path& path : find_results(where)) text += line_of(path, width);
  return text.empty() ? fmt::format("no results below {}\n", where.string()) : text;
}

std::vector<LayerHealth> routing_health(const ResultsFile& file, const std::string& run) {
  std::vector<LayerHealth> layers;
  const std::string group = ResultsFile::group_of(run) + "/routing/";
  const hdf5::Reader& reader = file.reader();
  if (!reader.has(group + "layer")) return layers;
  const auto index = reader.read<std::int64_t>(group + "layer");
  const auto experts = reader.read<std::int64_t>(group + "num_experts");
  require(experts.size() == index.size(), "[results] {} of {} has {} layers and {} numbers of experts", group,
          file.path().string(), index.size(), experts.size());
  for (std::size_t l = 0; l < index.size(); ++l) layers.push_back({index[l], experts[l]});
  const auto last = [&](const char* name, double LayerHealth::*member) {
    if (!reader.has(group + name)) return;
    const auto values = reader.read<double>(group + name);  // (step, layer)
    require(values.size() >= layers.size() && values.size() % layers.size() == 0,
            "[results] {} of {} is no table over {} layers", group + name, file.path().string(),
            layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l)
      layers[l].*member = values[values.size() - layers.size() + l];
  };
  last("load_cv", &LayerHealth::load_cv);
  last("dead_fraction", &LayerHealth::dead_fraction);
  last("fraction_dropped", &LayerHealth::fraction_dropped);
  last("router_entropy", &LayerHealth::router_entropy);
  last("max_violation", &LayerHealth::max_violation);
  return layers;
}

std::string describe_file(const ResultsFile& file, std::size_t columns) {
  const ExperimentInfo& e = file.experiment();
  std::string text = fmt::format("{}   {}, written {}\n", visible_line(e.name), file.path().string(),
                                 file.reader().text_attribute("", "created"));
  if (!e.description.empty()) text += indented(e.description);
  text += "\n";
  if (file.runs().empty()) return text + "no runs yet\n";
  text += to_terminal(runs_table(file.runs()), columns);
  std::vector<std::string> runs;
  for (const RunSummary& r : file.runs()) {
    runs.push_back(r.run);
    const std::string reason = file.reader().text_attribute(ResultsFile::group_of(r.run), "status_reason");
    if (!reason.empty()) text += fmt::format("{}: {}: {}\n", r.run, to_string(r.status), reason);
  }
  const TextTable health = health_table(file, runs);
  if (!health.rows.empty())
    text += "\nRouting at the last record (dead: experts without a token)\n" + to_terminal(health, columns);
  return text;
}

std::string baseline_note(const ResultsFile& file) {
  if (file.runs().empty()) return {};
  const ExperimentInfo& e = file.experiment();
  std::string why;
  if (e.baseline.empty())
    why = " (the first variant: none is named)";
  else if (std::ranges::find(file.runs(), e.baseline, &RunSummary::variant) == file.runs().end())
    why = fmt::format(" (the first variant: there is no run of {})", visible_line(e.baseline));
  return fmt::format(
      "baseline: {}{}, metric: {}; others with `moelab compare --baseline NAME --metric NAME`\n",
      visible_line(file.reader().text_attribute("variants", "baseline")), why,
      e.metric.empty() ? "eval/loss" : visible_line(e.metric));
}

std::string describe_run(const ResultsFile& file, const std::string& run, std::size_t columns) {
  const RunSummary& r = file.run(run);
  const std::string group = ResultsFile::group_of(run);
  std::string text = fmt::format("{}   variant {}, seed {}", r.run, r.variant, r.seed);
  if (r.sweep_point != "{}") text += ", " + r.sweep_point;
  text += "\n\n" + to_terminal(runs_table({r}), columns);
  const std::string reason = file.reader().text_attribute(group, "status_reason");
  if (!reason.empty()) text += reason + "\n";
  const TextTable health = health_table(file, {run});
  if (!health.rows.empty())
    text += "\nRouting at the last record (dead: experts without a token)\n" + to_terminal(health, columns);
  const TextTable accounting = accounting_table(file.reader(), group + "/accounting");
  if (!accounting.rows.empty()) text += "\nAccounting\n" + to_terminal(accounting, columns);
  if (file.reader().has(group + "/provenance")) {
    text += "\nProvenance\n";
    for (const hdf5::Attribute& a : file.reader().group(group + "/provenance").attributes)
      if (std::holds_alternative<std::string>(a.value))
        text += fmt::format("  {}: {}\n", a.name, visible_line(std::get<std::string>(a.value)));
  }
  text += "\nConfiguration\n" + indented(file.reader().text(group + "/config_resolved"));
  return text;
}

}  // namespace moelab

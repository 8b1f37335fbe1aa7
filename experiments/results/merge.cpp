#include "experiments/results/merge.hpp"

#include "core/error.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/results/export.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/ranges.h>

namespace moelab {

namespace {

namespace fs = std::filesystem;

// The folder of the execution whose run the file is; empty: it lies elsewhere.
fs::path execution_of(const fs::path& file) {
  std::error_code error;
  const fs::path folder = fs::canonical(file, error).parent_path().parent_path();
  if (error || file.filename() != "run.h5" || !fs::exists(folder / "experiment.yaml", error)) return {};
  return folder;
}

std::optional<ExperimentInfo> experiment_beside(const fs::path& file) {
  const fs::path folder = execution_of(file);
  if (folder.empty()) return std::nullopt;
  try {
    return read_experiment(RunStore::open(folder));
  } catch (const Error&) {
    return std::nullopt;  // the runs are whole without it
  }
}

// Where each of them lies in an execution.
ExperimentInfo experiment_of_executions(const std::vector<fs::path>& files) {
  ExperimentInfo unknown;
  unknown.name = "merged";
  std::optional<ExperimentInfo> info;
  for (const fs::path& file : files) {
    const std::optional<ExperimentInfo> other = experiment_beside(file);
    if (!other || (info && info->config_source != other->config_source)) return unknown;
    if (!info) info = other;
  }
  return info.value_or(unknown);
}

ExperimentInfo common_experiment(const std::vector<fs::path>& files) {
  ExperimentInfo info;
  for (const fs::path& file : files) {
    const ExperimentInfo other = ResultsFile(file).experiment();
    if (other.config_source.empty()) continue;
    if (info.config_source.empty()) info = other;
    require(info.config_source == other.config_source,
            "[merge] {} is of another experiment file than the files before it; `moelab compare` takes files "
            "of several",
            file.string());
  }
  return info.config_source.empty() ? experiment_of_executions(files) : info;
}

// The files of one execution change places among themselves.
std::vector<fs::path> in_order_of_the_experiment(const std::vector<fs::path>& files) {
  std::map<fs::path, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (const fs::path folder = execution_of(files[i]); !folder.empty()) places[folder].push_back(i);
  std::vector<fs::path> ordered = files;
  for (const auto& [folder, indices] : places) {
    const std::vector<std::string> runs = RunStore::open(folder).runs();
    std::vector<std::size_t> from = indices;
    std::ranges::stable_sort(from, {}, [&](std::size_t i) {
      const std::string run = fs::canonical(files[i]).parent_path().filename().string();
      return std::ranges::find(runs, run) - runs.begin();
    });
    for (std::size_t i = 0; i < indices.size(); ++i) ordered[indices[i]] = files[from[i]];
  }
  return ordered;
}

void require_variant(const std::string& name, const std::vector<fs::path>& files) {
  std::set<std::string> variants;
  for (const fs::path& path : files) {
    const ResultsFile file(path);
    for (const RunSummary& run : file.runs()) variants.insert(run.variant);
  }
  require(variants.contains(name), "[merge] there is no baseline '{}'; the variants are {}", name,
          fmt::join(variants, ", "));
}

void require_metric(const std::string& metric, const std::vector<fs::path>& files) {
  std::set<std::string> metrics;
  for (const fs::path& path : files) {
    const ResultsFile file(path);
    for (const RunSummary& run : file.runs()) {
      if (metric.find('/') != std::string::npos && file.series(run.run, metric)) return;
      for (const NamedSeries& known : all_series(file, run.run))
        if (!known.name.starts_with("moe/")) metrics.insert(known.name);
    }
  }
  throw ConfigError(fmt::format("[merge] no run has the metric '{}'; {}", metric,
                                metrics.empty()
                                    ? "they have recorded none"
                                    : fmt::format("the metrics are {}", fmt::join(metrics, ", "))));
}

}  // namespace

void merge_results(const std::vector<fs::path>& files, const fs::path& output, const MergeOptions& options) {
  ExperimentInfo info = common_experiment(files);
  if (info.name.empty()) info.name = "merged";
  if (!options.baseline.empty()) {
    require_variant(options.baseline, files);
    info.baseline = options.baseline;
  }
  if (!options.metric.empty()) {
    require_metric(options.metric, files);
    info.metric = options.metric;
  }
  write_results_file(output, info, in_order_of_the_experiment(files));
}

}  // namespace moelab

#include "experiments/plot/figures.hpp"

#include "core/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moelab::plot {

const std::vector<FigureKind>& figure_kinds() {
  static const std::vector<FigureKind> kinds = {
      {"loss",
       "a metric over tokens, FLOPs, seconds or steps; the seeds as a band",
       {"--metric", "--x", "--log-x", "--log-y"},
       loss_figure},
      {"load",
       "share of the tokens that each expert gets, over steps, layer by layer",
       {"--run"},
       load_figure},
      {"entropy", "router entropy of each layer over steps", {"--run"}, entropy_figure},
      {"load_cv", "variation of the expert load of each layer over steps", {"--run"}, load_cv_figure},
      {"coactivation", "how often two experts are chosen for the same token", {"--run"}, coactivation_figure},
      {"domains", "tokens of each domain by expert, against the uniform line", {"--run"}, domains_figure},
      {"saturation",
       "share of the final choice of experts that was already made",
       {"--run"},
       saturation_figure},
      {"tokens",
       "sample text, coloured by the first expert of each token",
       {"--run", "--layer"},
       tokens_figure},
      {"bars", "a metric by variant with intervals", {"--metric", "--at"}, bars_figure},
      {"isoflop",
       "a metric by variant at equal training compute, the largest that all reach",
       {"--metric", "--at"},
       isoflop_figure},
      {"scaling",
       "loss against active and total parameters, with a power law a variant",
       {"--metric", "--at"},
       scaling_figure},
  };
  return kinds;
}

Drawing make_figure(const ResultsFile& file, const std::string& kind, const FigureOptions& options) {
  const auto it = std::ranges::find(figure_kinds(), kind, &FigureKind::name);
  if (it != figure_kinds().end()) return it->make(file, options);
  std::string known;
  for (const FigureKind& k : figure_kinds()) known += (known.empty() ? "" : ", ") + k.name;
  throw ConfigError(fmt::format("there is no figure '{}'; the kinds are {}", kind, known));
}

std::string metric_label(const std::string& metric) {
  if (metric == "eval/loss") return "held-out loss (nat)";
  if (metric.starts_with("eval/loss/")) return "held-out loss on " + metric.substr(10) + " (nat)";
  if (metric == "train/loss") return "training loss (nat)";
  if (metric == "eval/bits_per_byte") return "held-out bits per byte";
  if (metric == "train/tokens_per_second") return "tokens per second";
  return metric;
}

std::string run_with(const ResultsFile& file, const FigureOptions& options, const std::string& object) {
  const auto has = [&](const std::string& run) {
    return file.reader().has(ResultsFile::group_of(run) + "/" + object);
  };
  if (!options.run.empty()) {
    require(has(file.run(options.run).run), "[plot] run {} of {} has no {}", options.run,
            file.path().string(), object);
    return options.run;
  }
  for (const RunSummary& r : file.runs())
    if (has(r.run)) return r.run;
  fail("[plot] no run of {} has {}", file.path().string(), object);
}

std::vector<std::int64_t> layers_of(const hdf5::Reader& reader, const std::string& group) {
  auto layers = reader.read_array<std::int64_t>(group + "layer", {hdf5::kAnyLength}).values;
  require(!layers.empty(), "[plot] {} of {} has no layer", group, reader.path().string());
  return layers;
}

}  // namespace moelab::plot

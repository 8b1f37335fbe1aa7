#include "experiments/config/check_records.hpp"

#include "core/suggest.hpp"
#include "experiments/config/patch.hpp"
#include "experiments/config/recorded_metrics.hpp"
#include "moe/statistics.hpp"

#include <string>
#include <unordered_set>
#include <vector>

namespace moelab {

namespace {

Mark mark_of(const yaml::Node& root, const char* path) {
  const yaml::Node* node = find_path(root, path);
  return node == nullptr ? root.mark : node->mark;
}

}  // namespace

void check_metric(const Experiment& experiment, const yaml::Node& root, Diagnostics& told) {
  const std::string& metric = experiment.compare.metric;
  std::vector<std::string> known;  // each once, in order
  std::unordered_set<std::string> seen;
  for (const Run& run : experiment.runs) {
    for (std::string& name : recorded_metrics(run.config)) {
      if (name == metric) return;
      if (seen.insert(name).second) known.push_back(std::move(name));
    }
  }
  told.error(mark_of(root, "compare.metric"),
             fmt::format("compare.metric: `{}` is recorded by no run", metric), did_you_mean(metric, known));
}

void warn_of_pairs(const Experiment& experiment, const yaml::Node& root, Diagnostics& told) {
  for (const Run& run : experiment.runs) {
    const auto [num_layers, num_experts] = mixture_sizes(run.config.model);
    if (moe::counts_pairs(num_layers, num_experts)) continue;
    const std::string text = fmt::format(
        "variant {}: the results will have no co-activation of experts: {} mixtures of {} "
        "experts have {} pairs, {} are counted at most",
        run.variant, num_layers, num_experts, num_layers * num_experts * num_experts, moe::kMaxPairs);
    told.warning(mark_of(root, "model"), text);
  }
}

}  // namespace moelab

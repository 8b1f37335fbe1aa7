#include "experiments/config/select_runs.hpp"

#include "core/error.hpp"
#include "core/suggest.hpp"

#include <algorithm>

#include <fmt/ranges.h>

namespace moelab {

namespace {

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

template <class T>
bool selects(const std::vector<T>& selected, const T& value) {
  return selected.empty() || contains(selected, value);
}

}  // namespace

void select_runs(Experiment& experiment, const RunSelection& selection) {
  for (const std::string& variant : selection.variants) {
    if (contains(experiment.variants, variant)) continue;
    throw ConfigError(
        fmt::format("there is no variant `{}`; {}", variant, did_you_mean(variant, experiment.variants)));
  }
  for (const std::int64_t seed : selection.seeds) {
    if (contains(experiment.seeds, seed)) continue;
    throw ConfigError(
        fmt::format("there is no seed {}; the experiment has {}", seed, fmt::join(experiment.seeds, ", ")));
  }
  for (const Index point : selection.points) {
    if (point >= 0 && point < std::ssize(experiment.points)) continue;
    throw ConfigError(fmt::format("there is no sweep point {}; {}", point,
                                  experiment.points.empty() ? "the experiment has no sweep"
                                  : experiment.points.size() == 1
                                      ? "the experiment has one, 0"
                                      : fmt::format("its points are 0 to {}", experiment.points.size() - 1)));
  }
  keep_runs(experiment, [&](const Run& run) {
    const bool at_point = selection.points.empty() || (run.point && contains(selection.points, *run.point));
    return selects(selection.variants, run.variant) && selects(selection.seeds, run.seed) && at_point;
  });
}

void keep_runs(Experiment& experiment, const std::function<bool(const Run&)>& keeps) {
  std::erase_if(experiment.runs, [&](const Run& run) { return !keeps(run); });
  if (experiment.runs.empty()) throw ConfigError("no run of the experiment is selected");
  // A branch without its trunk is trained from the start, to the same end.
  for (Run& run : experiment.runs) {
    const bool has_trunk = std::any_of(experiment.runs.begin(), experiment.runs.end(),
                                       [&](const Run& other) { return other.name == run.trunk; });
    if (has_trunk) continue;
    run.trunk.clear();
    run.trunk_step = 0;
  }
  std::erase_if(experiment.seeds, [&](std::int64_t seed) {
    return std::none_of(experiment.runs.begin(), experiment.runs.end(),
                        [&](const Run& run) { return run.seed == seed; });
  });
  std::erase_if(experiment.variants, [&](const std::string& variant) {
    return std::none_of(experiment.runs.begin(), experiment.runs.end(),
                        [&](const Run& run) { return run.variant == variant; });
  });
  const std::optional<std::string>& baseline = experiment.compare.baseline;
  if (baseline && !contains(experiment.variants, *baseline)) experiment.compare.baseline.reset();
}

}  // namespace moelab

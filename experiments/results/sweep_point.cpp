#include "experiments/results/sweep_point.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace moelab {

SweepSettings sweep_settings(const std::string& json) {
  SweepSettings settings;
  if (json.empty()) return settings;
  const auto point = nlohmann::ordered_json::parse(json, nullptr, false);
  if (!point.is_object()) return {{"", json}};
  for (const auto& [key, value] : point.items())
    settings.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  return settings;
}

std::optional<std::size_t> same_point(const SweepSettings& mine, std::span<const SweepSettings> baseline) {
  // The rank of a point, lower is nearer: settings that the run lacks, then those that it shares.
  std::optional<std::pair<std::ptrdiff_t, std::ptrdiff_t>> nearest;
  std::optional<std::size_t> result;
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    std::ptrdiff_t missing = 0, shared = 0;
    bool differs = false;
    for (const auto& [key, value] : baseline[i]) {
      const auto own = std::ranges::find(mine, key, &SweepSettings::value_type::first);
      if (own == mine.end()) {
        ++missing;
      } else {
        ++shared;
        differs = differs || own->second != value;
      }
    }
    if (differs || (missing > 0 && shared == 0)) continue;
    const std::pair rank(missing, -shared);
    if (!nearest || rank < *nearest) {
      nearest = rank;
      result = i;
    } else if (rank == *nearest) {
      result.reset();
    }
  }
  return result;
}

}  // namespace moelab

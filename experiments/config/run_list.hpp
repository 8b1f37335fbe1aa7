// The runs of an experiment: each variant at each of its points, length and seed, with a name of its own.
#pragma once

#include "core/diagnostics.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/config/experiment_file.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

class RunList {
 public:
  // Runs are added to `experiment`, which has its seeds. `mark`: where what concerns all runs is told.
  RunList(Experiment& experiment, Mark mark, Diagnostics& diagnostics)
      : experiment_(experiment), mark_(std::move(mark)), diagnostics_(diagnostics) {}

  // Whether that many runs more are not too many; tells where they are.
  bool has_room_for(std::size_t more);

  // One run a seed, or one a seed and length where the config has branches. A name that is there already, or
  // that no folder can have, is told. False where there is no room for them.
  bool add(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
           const RunConfig& config);

 private:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  std::vector<Run> branches_of(const std::string& variant, const Settings& settings, const RunConfig& config);
  std::optional<Index> point_index(Settings settings);
  void check_name(const std::string& name, const VariantPatch& variant,
                  const std::vector<const SweepSetting*>& point);

  Experiment& experiment_;
  Mark mark_;
  Diagnostics& diagnostics_;
  std::set<std::string> names_;
};

}  // namespace moelab

#include "experiments/config/run_list.hpp"

#include "core/fields_writer.hpp"
#include "core/yaml.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace moelab {

namespace {

// 1500000 -> 1.5M, for names: exact, with the largest unit that leaves at most three decimals.
std::string short_tokens(Index tokens) {
  constexpr std::array<std::pair<const char*, Index>, 3> kUnits = {
      {{"G", 1'000'000'000}, {"M", 1'000'000}, {"k", 1000}}};
  for (const auto& [unit, size] : kUnits) {
    if (tokens >= size && tokens % (size / 1000) == 0) {
      return fmt::format("{}{}", static_cast<double>(tokens) / static_cast<double>(size), unit);
    }
  }
  return fmt::format("{}", tokens);
}

}  // namespace

bool RunList::has_room_for(std::size_t more) {
  if (experiment_.runs.size() + more <= kMaxRuns) return true;
  diagnostics_.error(mark_, fmt::format("the experiment has more than {} runs", kMaxRuns));
  return false;
}

bool RunList::add(const VariantPatch& variant, const std::vector<const SweepSetting*>& point,
                  const RunConfig& config) {
  Settings settings;
  for (const SweepSetting* setting : point) {
    settings.insert(settings.end(), setting->entries.begin(), setting->entries.end());
  }
  std::vector<Run> lengths;  // one, or one a branch
  if (!config.train.branches) {
    const std::optional<Index> index = point_index(settings);
    lengths.push_back({index ? fmt::format("-p{}", *index) : "", variant.name, 0, index, config, ""});
  } else {
    lengths = branches_of(variant.name, settings, config);
  }
  if (!has_room_for(lengths.size() * experiment_.seeds.size())) return false;
  for (Run& run : lengths) run.resolved_yaml = yaml::emit(write_fields(run.config));
  for (const std::int64_t seed : experiment_.seeds) {
    const std::string stem = fmt::format("{}-s{}", variant.name, seed);
    for (Run run : lengths) {
      run.seed = seed;
      run.name = stem + run.name;
      if (run.trunk_step > 0) run.trunk = stem + lengths.back().name;
      check_name(run.name, variant, point);
      experiment_.runs.push_back(std::move(run));
    }
  }
  return true;
}

// Runs are folders, so each has a name of its own that fits.
void RunList::check_name(const std::string& name, const VariantPatch& variant,
                         const std::vector<const SweepSetting*>& point) {
  if (!names_.insert(name).second) {
    diagnostics_.error(point.empty() ? mark_ : point.back()->patch.mark,
                       fmt::format("sweep: a point stands twice; both would be the run {}", name));
  }
  if (name.size() > kLongestName) {
    diagnostics_.error(
        variant.mark.source == nullptr ? mark_ : variant.mark,
        fmt::format("the run {} has a name of {} bytes, it may have {}", name, name.size(), kLongestName),
        "give the variant a shorter name");
  }
}

// Each length is a point: it differs from the others in max_tokens. Names are without the seed yet.
std::vector<Run> RunList::branches_of(const std::string& variant, const Settings& settings,
                                      const RunConfig& config) {
  std::vector<Run> runs;
  std::vector<std::int64_t> branch_steps;
  for (const Index tokens : *config.train.branches) {
    Settings all = settings;
    all.emplace_back("train.max_tokens", fmt::format("{}", tokens));
    const std::optional<Index> index = point_index(all);
    const std::string point = settings.empty() ? "" : fmt::format("-p{}", *index);
    Run run{point + "-t" + short_tokens(tokens), variant, 0, index, config, ""};
    run.config.train.branches.reset();
    run.config.train.max_tokens = tokens;
    const bool is_trunk = tokens == config.train.branches->back();
    if (!is_trunk) run.trunk_step = run.config.train.num_stable_steps();
    if (run.trunk_step > 0) branch_steps.push_back(run.trunk_step);
    runs.push_back(std::move(run));
  }
  runs.back().branch_steps = std::move(branch_steps);
  return runs;
}

// The number of a point among those that are different.
std::optional<Index> RunList::point_index(Settings settings) {
  if (settings.empty()) return std::nullopt;
  SweepPoint point{std::move(settings)};
  std::vector<SweepPoint>& points = experiment_.points;
  const auto known = std::find_if(points.begin(), points.end(),
                                  [&](const SweepPoint& p) { return p.settings == point.settings; });
  const Index index = known - points.begin();
  if (known == points.end()) points.push_back(std::move(point));
  return index;
}

}  // namespace moelab

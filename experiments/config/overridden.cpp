#include "experiments/config/overridden.hpp"

#include "core/error.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/patch.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

using yaml::Node;

namespace {

// Whether a value at one of two dotted paths takes part in what is at the other.
bool overlap(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
}

// Whether a patch sets what is at the path, or replaces a block around it by one of a kind.
bool sets(const Node& patch, const std::string& path) {
  for (std::string part = path;;) {
    const Node* node = find_path(patch, part);
    if (node != nullptr) return part == path || !node->is_mapping() || node->find("kind") != nullptr;
    const std::size_t dot = part.rfind('.');
    if (dot == std::string::npos) return false;
    part.resize(dot);
  }
}

// What sets the path after overrides are applied, for people.
std::vector<std::string> setters_of(const std::string& path, const Experiment& experiment) {
  std::vector<std::string> setters;
  Diagnostics untold;
  const Node root =
      yaml::parse(experiment.source, yaml::make_source(experiment.file.string(), experiment.source), untold);
  const bool at_points = std::ranges::any_of(experiment.points, [&](const SweepPoint& point) {
    return std::ranges::any_of(point.settings, [&](const auto& s) { return overlap(s.first, path); });
  });
  if (at_points) setters.push_back(root.find("sweep") != nullptr ? "the sweep" : "train.branches");
  const Node* variants = root.find("variants");
  if (variants == nullptr) return setters;
  for (const Node::Entry& variant : variants->entries) {
    if (sets(expand_dotted_keys(variant.value, untold), path)) setters.push_back("variant " + variant.key);
  }
  return setters;
}

// Whether the experiment is the same without one of its overrides.
bool is_same_without(std::size_t index, const Experiment& all, LoadOptions options) {
  options.overrides.erase(options.overrides.begin() + static_cast<std::ptrdiff_t>(index));
  try {
    const Experiment without = load_experiment(all.file, options);
    return std::ranges::equal(all.runs, without.runs, [](const Run& a, const Run& b) {
      return a.name == b.name && a.resolved_yaml == b.resolved_yaml;
    });
  } catch (const Error&) {
    return false;  // it takes the override to make it sound
  }
}

}  // namespace

std::vector<std::string> overrides_without_effect(const Experiment& all, const LoadOptions& options) {
  std::vector<std::string> told;
  for (std::size_t i = 0; i < options.overrides.size(); ++i) {
    const std::string& text = options.overrides[i];
    const std::string path = text.substr(0, text.find('='));
    if (std::ranges::find(run_blocks(), path.substr(0, path.find('.'))) == run_blocks().end()) continue;
    const std::vector<std::string> setters = setters_of(path, all);
    if (setters.empty() || !is_same_without(i, all, options)) continue;
    told.push_back(fmt::format("{} changes no run: {} is set by {}, which comes after overrides", text, path,
                               fmt::join(setters, ", ")));
  }
  return told;
}

}  // namespace moelab

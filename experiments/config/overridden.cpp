#include "experiments/config/overridden.hpp"

#include "core/error.hpp"
#include "experiments/config/base_tree.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/patch.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

using yaml::Node;

namespace {

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

// What is applied after overrides: the variants of the file, with their names, and the points of its sweep.
struct Patches {
  std::vector<VariantPatch> variants;
  std::vector<Node> points;
};

Patches patches_of(const Experiment& experiment) {
  Diagnostics untold;
  Node root =
      yaml::parse(experiment.source, yaml::make_source(experiment.file.string(), experiment.source), untold);
  apply_overrides(root, experiment.overrides, untold);
  const Node* variants = root.find("variants");
  Patches patches{read_variants(variants == nullptr ? Node() : *variants, untold), {}};
  for (const SweepPoint& point : experiment.points) {
    Node patch = Node::mapping();
    for (const auto& [key, value] : point.settings)
      patch.entries.push_back({key, {}, yaml::parse(value, yaml::make_source(key, value), untold)});
    patches.points.push_back(expand_dotted_keys(patch, untold));
  }
  return patches;
}

// The dotted paths of the values that a patch sets.
void add_paths(const Node& patch, const std::string& path, std::vector<std::string>& paths) {
  if (patch.entries.empty()) paths.push_back(path);
  for (const Node::Entry& entry : patch.entries)
    add_paths(entry.value, path.empty() ? entry.key : path + "." + entry.key, paths);
}

// What sets the path in the runs, for people; empty where one of them takes it as overrides have left it.
std::vector<std::string> setters_of(const std::string& path, const Experiment& experiment,
                                    const Patches& patches) {
  const auto sets_path = [&](const Node& patch) { return sets(patch, path); };
  std::vector<std::string> setters;
  const bool at_points = std::ranges::any_of(patches.points, sets_path);
  if (at_points) setters.emplace_back("the sweep");
  std::set<std::string> setting;  // variants, also by way of one that they extend
  for (const VariantPatch& variant : patches.variants) {
    const bool is_solved_for = !variant.twin_of.empty() && path.ends_with(".d_ff");
    if (is_solved_for || std::ranges::any_of(variant.patches, sets_path)) setting.insert(variant.name);
    if (is_solved_for || (!variant.patches.empty() && sets_path(variant.patches.back())))
      setters.push_back("variant " + variant.name);
  }
  const bool all_runs = std::ranges::all_of(experiment.runs, [&](const Run& run) {
    return setting.contains(run.variant) ||
           (run.point && sets_path(patches.points[static_cast<std::size_t>(*run.point)]));
  });
  return all_runs ? setters : std::vector<std::string>();
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
  if (options.overrides.empty()) return told;
  const Patches patches = patches_of(all);
  Diagnostics untold;
  for (std::size_t i = 0; i < options.overrides.size(); ++i) {
    const std::string& text = options.overrides[i];
    const std::string block = text.substr(0, text.find_first_of(".="));
    if (std::ranges::find(run_blocks(), block) == run_blocks().end()) continue;
    std::vector<std::string> paths;
    add_paths(parse_override(text, static_cast<int>(i) + 1, untold), "", paths);
    for (const std::string& path : paths) {
      const std::vector<std::string> setters = setters_of(path, all, patches);
      if (setters.empty()) continue;
      if (is_same_without(i, all, options))
        told.push_back(fmt::format("{} changes no run: {} is set by {}, which comes after overrides", text,
                                   path, fmt::join(setters, ", ")));
      break;
    }
  }
  return told;
}

}  // namespace moelab

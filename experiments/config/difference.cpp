#include "experiments/config/difference.hpp"

#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/yaml_leaves.hpp"
#include "experiments/config/train_config.hpp"

#include <algorithm>

namespace moelab {

namespace {

yaml::Node tree_of(const std::string& text) {
  Diagnostics diagnostics;
  yaml::Node root = yaml::parse(text, yaml::make_source("resolved config", text), diagnostics);
  require(diagnostics.num_errors() == 0, "[config] a resolved config is not YAML");
  return root;
}

yaml::Leaves fields_of(const std::string& text) { return yaml::leaves_of(tree_of(text)); }

const yaml::Node& part_of(const yaml::Node& root, const std::string& key) {
  const yaml::Node* node = root.find(key);
  require(node != nullptr, "[config] a resolved config has no `{}`", key);
  return *node;
}

template <class Config>
Config read_part(const std::string& text, const std::string& key) {
  const yaml::Node root = tree_of(text);
  Config config;
  Diagnostics diagnostics;
  read_fields(part_of(root, key), config, diagnostics);
  require(diagnostics.num_errors() == 0, "[config] a resolved config is of another version:\n{}",
          diagnostics.render());
  return config;
}

TrainConfig train_of(const std::string& text) { return read_part<TrainConfig>(text, "train"); }

std::string value_in(const yaml::Leaves& fields, const std::string& key) {
  const auto it = fields.find(key);
  return it == fields.end() ? "absent" : it->second;
}

struct Difference {
  std::string key, before, after;
  std::string text() const { return fmt::format("{}: {} -> {}", key, before, after); }
};

std::vector<Difference> differences(const yaml::Leaves& before, const yaml::Leaves& after) {
  std::vector<Difference> found;
  for (const std::string& key : yaml::differing_keys(before, after)) {
    found.push_back({key, value_in(before, key), value_in(after, key)});
  }
  return found;
}

bool starts_with_any(const std::string& key, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return key.rfind(prefix, 0) == 0; });
}

}  // namespace

std::vector<std::string> differences_against_resume(const std::string& before, const std::string& after,
                                                    std::int64_t step) {
  const TrainConfig old_train = train_of(before);
  const TrainConfig new_train = train_of(after);
  const std::string& schedule = old_train.schedule.kind;
  const bool before_decay =
      schedule == "wsd" && step <= std::min(old_train.num_stable_steps(), new_train.num_stable_steps());
  const bool is_too_short = step > new_train.num_steps();
  const bool length_is_free = (schedule == "constant" || before_decay) && !is_too_short;
  std::vector<std::string> lines;
  for (const Difference& d : differences(fields_of(before), fields_of(after))) {
    if (starts_with_any(d.key, {"log.", "eval.", "train.checkpoint"})) continue;
    const bool is_length = starts_with_any(d.key, {"train.max_tokens", "train.max_steps", "train.branches"});
    if (is_length && length_is_free) continue;
    lines.push_back(d.text());
    if (is_length && is_too_short) lines.back() += fmt::format(", but the run is at step {} already", step);
  }
  return lines;
}

std::vector<std::string> differences_against_done(const std::string& before, const std::string& after) {
  std::vector<std::string> lines;
  for (const Difference& d : differences(fields_of(before), fields_of(after))) {
    if (!starts_with_any(d.key, {"log.", "eval.every_tokens", "train.checkpoint"})) lines.push_back(d.text());
  }
  return lines;
}

std::int64_t steps_of_resolved(const std::string& resolved) { return train_of(resolved).num_steps(); }

DataConfig data_of_resolved(const std::string& resolved) { return read_part<DataConfig>(resolved, "data"); }

std::string part_of_resolved(const std::string& resolved, const std::string& key) {
  return yaml::emit_flow(part_of(tree_of(resolved), key));
}

}  // namespace moelab

#include "core/suggest.hpp"
#include "core/yaml_scalar.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/patch.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace moelab {

using yaml::Node;

namespace {

// The same for 1e-3 and 0.001.
std::string identity_of(const Node& value) {
  const yaml::Parsed<std::int64_t> integer = yaml::read_integer(value);
  if (const std::int64_t* read = std::get_if<std::int64_t>(&integer)) return fmt::format("{}", *read);
  const yaml::Parsed<double> number = yaml::read_number(value);
  if (const double* read = std::get_if<double>(&number)) return fmt::format("{}", *read);
  return yaml::emit_flow(value);
}

class SweepReader {
 public:
  SweepReader(const std::vector<VariantPatch>& variants, Diagnostics& diagnostics)
      : diagnostics_(diagnostics) {
    for (const VariantPatch& variant : variants) names_.push_back(variant.name);
  }

  // One value of each of several keys.
  SweepSetting setting(const std::vector<std::pair<const Node::Entry*, const Node*>>& values,
                       const std::vector<std::string>& only) {
    SweepSetting out;
    out.only = only;
    Node patch = Node::mapping();
    for (const auto& [key, value] : values) {
      patch.entries.push_back({key->key, key->key_mark, *value});
      out.entries.emplace_back(key->key, yaml::emit_flow(*value));
    }
    if (!values.empty()) patch.mark = values.front().first->key_mark;
    out.patch = expand_dotted_keys(patch, diagnostics_);
    for (const Node::Entry& entry : out.patch.entries) {
      const std::vector<std::string>& blocks = run_blocks();
      if (std::find(blocks.begin(), blocks.end(), entry.key) != blocks.end()) continue;
      diagnostics_.error(entry.key_mark, fmt::format("sweep: `{}` is no part of a run", entry.key),
                         "write keys as in train.optimizer.lr");
    }
    return out;
  }

  std::vector<std::string> only_of(const Node& block) {
    std::vector<std::string> out;
    const Node* only = block.find("only");
    if (only == nullptr) return out;
    const std::vector<Node> single = {*only};
    for (const Node& name : only->is_list() ? only->items : single) {
      if (name.is_scalar() && std::find(names_.begin(), names_.end(), name.text) != names_.end()) {
        out.push_back(name.text);
      } else {
        diagnostics_.error(name.mark, fmt::format("only: {} is not a variant", yaml::describe(name)),
                           did_you_mean(name.text, names_));
      }
    }
    return out;
  }

  // The keys of a grid or zip block with their lists of values; those in error are left out.
  std::vector<const Node::Entry*> axes(const Node& block, const char* name) {
    std::vector<const Node::Entry*> out;
    if (!block.is_null() && !block.is_mapping()) {
      diagnostics_.error(block.mark,
                         fmt::format("sweep.{} must be a mapping from dotted keys to lists", name));
      return out;
    }
    for (const Node::Entry& entry : block.entries) {
      if (entry.key == "only") continue;
      if (!entry.value.is_list() || entry.value.items.empty()) {
        diagnostics_.error(entry.value.mark, fmt::format("sweep.{}.{}: {} where a list of values belongs",
                                                         name, entry.key, yaml::describe(entry.value)));
      } else if (entry.value.items.size() > kMaxRuns) {
        diagnostics_.error(entry.value.mark,
                           fmt::format("sweep.{}.{} has more than {} values", name, entry.key, kMaxRuns));
      } else {
        out.push_back(&entry);
        if (std::string_view(name) == "grid") require_different(entry);
      }
    }
    return out;
  }

  // A value that stands twice would make two points of one name.
  void require_different(const Node::Entry& axis) {
    std::set<std::string> known;
    for (const Node& value : axis.value.items) {
      if (known.insert(identity_of(value)).second) continue;
      diagnostics_.error(value.mark,
                         fmt::format("sweep.grid.{}: {} stands twice", axis.key, yaml::emit_flow(value)));
    }
  }

  SweepBlock grid(const Node& block) {
    const std::vector<const Node::Entry*> keys = axes(block, "grid");
    const std::vector<std::string> only = only_of(block);
    SweepBlock out;
    if (keys.empty()) return out;
    std::size_t total = 1;
    for (const Node::Entry* key : keys) total = std::min(total * key->value.items.size(), kMaxRuns + 1);
    if (total > kMaxRuns) {
      diagnostics_.error(block.mark, fmt::format("sweep.grid has more than {} points", kMaxRuns));
      return out;
    }
    // The last key changes fastest.
    for (std::size_t point = 0; point < total; ++point) {
      std::vector<std::pair<const Node::Entry*, const Node*>> values(keys.size());
      std::size_t rest = point;
      for (std::size_t i = keys.size(); i-- > 0;) {
        const std::vector<Node>& items = keys[i]->value.items;
        values[i] = {keys[i], &items[rest % items.size()]};
        rest /= items.size();
      }
      out.push_back(setting(values, only));
    }
    return out;
  }

  SweepBlock zip(const Node& block) {
    const std::vector<const Node::Entry*> keys = axes(block, "zip");
    const std::vector<std::string> only = only_of(block);
    SweepBlock out;
    if (keys.empty()) return out;
    const std::size_t length = keys.front()->value.items.size();
    for (const Node::Entry* key : keys) {
      if (key->value.items.size() == length) continue;
      diagnostics_.error(key->value.mark,
                         fmt::format("sweep.zip: {} has {} values, {} has {}", key->key,
                                     key->value.items.size(), keys.front()->key, length),
                         "lists that are gone through together have one length");
      return out;
    }
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<std::pair<const Node::Entry*, const Node*>> values;
      for (const Node::Entry* key : keys) values.emplace_back(key, &key->value.items[i]);
      out.push_back(setting(values, only));
    }
    return out;
  }

  SweepBlock list(const std::vector<Node>& points) {
    SweepBlock out;
    for (const Node& point : points) {
      if (!point.is_mapping()) {
        diagnostics_.error(point.mark,
                           fmt::format("sweep.list: {} where a patch belongs", yaml::describe(point)));
        continue;
      }
      std::vector<std::pair<const Node::Entry*, const Node*>> values;
      for (const Node::Entry& entry : point.entries) {
        if (entry.key != "only") values.emplace_back(&entry, &entry.value);
      }
      out.push_back(setting(values, only_of(point)));
    }
    return out;
  }

 private:
  Diagnostics& diagnostics_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<SweepBlock> read_sweep(const SweepConfig& sweep, const std::vector<VariantPatch>& variants,
                                   Diagnostics& diagnostics) {
  SweepReader reader(variants, diagnostics);
  std::vector<SweepBlock> blocks = {reader.grid(sweep.grid), reader.zip(sweep.zip), reader.list(sweep.list)};
  std::erase_if(blocks, [](const SweepBlock& block) { return block.empty(); });
  return blocks;
}

std::vector<std::vector<const SweepSetting*>> points_of(const std::vector<SweepBlock>& blocks,
                                                        const std::string& variant) {
  std::vector<std::vector<const SweepSetting*>> points = {{}};
  for (const SweepBlock& block : blocks) {
    std::vector<std::vector<const SweepSetting*>> longer;
    for (const auto& point : points) {
      for (const SweepSetting& setting : block) {
        const bool holds = setting.only.empty() ||
                           std::find(setting.only.begin(), setting.only.end(), variant) != setting.only.end();
        if (!holds) continue;
        longer.push_back(point);
        longer.back().push_back(&setting);
        if (longer.size() > kMaxRuns) return longer;
      }
    }
    if (!longer.empty()) points = std::move(longer);
  }
  return points;
}

}  // namespace moelab

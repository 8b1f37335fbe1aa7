#include "core/suggest.hpp"
#include "experiments/config/experiment_file.hpp"
#include "experiments/config/patch.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moelab {

using yaml::Node;

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Runs are named after variants, and folders after runs.
bool is_folder_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

// One variant as written.
struct Entry {
  VariantPatch variant;
  Node patch = Node::mapping();
  std::string extends;
  Mark extends_mark;
};

class VariantReader {
 public:
  VariantReader(const Node& variants, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    for (const Node::Entry& entry : variants.entries) names_.push_back(entry.key);
    for (const Node::Entry& entry : variants.entries) entries_.push_back(read(entry));
  }

  std::vector<VariantPatch> result() {
    std::vector<VariantPatch> out;
    for (Entry& entry : entries_) {
      std::vector<const Entry*> chain;
      collect(entry, chain);
      for (const Entry* link : chain) entry.variant.patches.push_back(link->patch);
      out.push_back(entry.variant);
    }
    return out;
  }

 private:
  Entry read(const Node::Entry& written) {
    Entry entry;
    entry.variant.name = written.key;
    entry.variant.mark = written.key_mark;
    if (!is_folder_name(written.key)) {
      diagnostics_.error(written.key_mark, fmt::format("`{}` cannot name a variant", written.key),
                         "letters, digits, `_`, `-` and `.` can, the last two not at the beginning");
    }
    if (written.value.is_null()) return entry;
    if (!written.value.is_mapping()) {
      diagnostics_.error(written.value.mark, fmt::format("the variant `{}` must be a mapping, not {}",
                                                         written.key, yaml::describe(written.value)));
      return entry;
    }
    Node patch = expand_dotted_keys(written.value, diagnostics_);
    take_name(patch, "extends", names_, entry.extends, entry.extends_mark);
    take_name(patch, "twin_of", names_, entry.variant.twin_of, entry.variant.twin_mark);
    const bool has_match = patch.find("match") != nullptr;
    const Mark match_mark = has_match ? patch.find_entry("match")->key_mark : Mark{};
    Mark unused;
    take_name(patch, "match", {"active_flops", "active_params", "total_params"}, entry.variant.match, unused);
    if (has_match && entry.variant.twin_of.empty()) {
      diagnostics_.error(match_mark, fmt::format("variant `{}`: `match` goes with `twin_of`", written.key));
    }
    for (const Node::Entry& key : patch.entries) {
      if (contains(run_blocks(), key.key)) continue;
      diagnostics_.error(key.key_mark,
                         fmt::format("variant `{}`: `{}` is no part of a run", written.key, key.key),
                         did_you_mean(key.key, run_blocks()));
    }
    entry.patch = std::move(patch);
    return entry;
  }

  // Takes the key out of the patch; its value must be one of `known`.
  void take_name(Node& patch, const char* key, const std::vector<std::string>& known, std::string& value,
                 Mark& mark) {
    const Node* node = patch.find(key);
    if (node == nullptr) return;
    if (!node->is_scalar() || !contains(known, node->text)) {
      diagnostics_.error(node->mark,
                         fmt::format("{}: {} is not one of {}", key, yaml::describe(*node), list_of(known)),
                         node->is_scalar() ? did_you_mean(node->text, known) : "");
    } else {
      value = node->text;
      mark = node->mark;
    }
    patch.erase(key);
  }

  // The variants that `entry` builds on, the first ancestor first.
  void collect(const Entry& entry, std::vector<const Entry*>& chain) {
    const Entry* at = &entry;
    while (at != nullptr) {
      if (std::find(chain.begin(), chain.end(), at) != chain.end()) {
        diagnostics_.error(entry.extends_mark, fmt::format("the variant `{}` extends itself, by way of `{}`",
                                                           entry.variant.name, chain.front()->variant.name));
        break;
      }
      chain.insert(chain.begin(), at);
      const auto parent = std::find_if(entries_.begin(), entries_.end(),
                                       [&](const Entry& e) { return e.variant.name == at->extends; });
      at = parent == entries_.end() ? nullptr : &*parent;
    }
  }

  Diagnostics& diagnostics_;
  std::vector<std::string> names_;
  std::vector<Entry> entries_;
};

}  // namespace

std::vector<VariantPatch> read_variants(const Node& variants, Diagnostics& diagnostics) {
  if (!variants.is_null() && !variants.is_mapping()) {
    diagnostics.error(variants.mark, fmt::format("`variants` must be a mapping from names to patches, not {}",
                                                 yaml::describe(variants)));
  }
  if (variants.entries.empty()) {
    VariantPatch base;
    base.name = "base";
    return {base};
  }
  std::vector<VariantPatch> out = VariantReader(variants, diagnostics).result();
  for (const VariantPatch& twin : out) {
    if (twin.twin_of.empty()) continue;
    const auto target =
        std::find_if(out.begin(), out.end(), [&](const VariantPatch& v) { return v.name == twin.twin_of; });
    if (target != out.end() && !target->twin_of.empty()) {
      diagnostics.error(twin.twin_mark, fmt::format("`{}` is a twin itself", twin.twin_of),
                        fmt::format("name `{}`", target->twin_of));
    }
  }
  return out;
}

}  // namespace moelab

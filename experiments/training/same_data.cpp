#include "experiments/training/same_data.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/config/difference.hpp"
#include "experiments/data/documents.hpp"
#include "experiments/data/image_dataset.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace moelab {

namespace {

using Names = std::set<std::string>;
using Json = nlohmann::json;

struct Source {
  std::string domain;  // empty: of all domains
  std::vector<std::string> files;
};

std::vector<Source> sources_of(const DataConfig& config) {
  std::vector<Source> sources;
  if (config.kind == "images") sources.push_back({"", image_files(config.images)});
  if (config.kind != "text") return sources;
  if (const std::string& tokenizer = config.text.tokenizer.file; !tokenizer.empty())
    sources.push_back({"", {tokenizer}});
  for (const TextDomain& domain : config.text.domains)
    sources.push_back({domain.name, list_files(domain).files});
  return sources;
}

std::pair<std::string, DataConfig> data_block_in(const std::filesystem::path& resolved) {
  const std::string text = read_file(resolved);
  try {
    return {part_of_resolved(text, "data"), data_of_resolved(text)};
  } catch (const Error& e) {
    fail("{}: {}", resolved.string(), e.what());
  }
}

// The part of data.json that is about a domain; null where there is none.
Json part_of(const std::string& about, const std::string& domain) {
  const Json all = Json::parse(about, nullptr, false);
  if (!all.is_object() || !all.contains("domains")) return {};
  for (const Json& one : all["domains"])
    if (one.is_object() && one.value("name", Json()) == domain) return one;
  return {};
}

// A data block as it is now, and what of it must be as it was.
struct Block {
  std::vector<std::pair<std::string, std::string>> files;  // see Dataset::files
  bool counts_whole = false;
  Names domains;  // that count where not all does
};

// Domains of which a file is read by selected runs; with the name "" where it is one of all domains.
Names shared_domains(const DataConfig& config, const Names& read_now) {
  Names shared;
  for (const Source& source : sources_of(config)) {
    if (std::ranges::any_of(source.files, [&](const auto& file) { return read_now.contains(file); }))
      shared.insert(source.domain);
  }
  return shared;
}

// The first file of a run's folder that says something else now; empty: none.
std::filesystem::path changed_file(const std::filesystem::path& folder, const Block& block) {
  for (const auto& [name, content] : block.files) {
    std::filesystem::path file = folder / name;
    if (!file_exists(file)) continue;
    const std::string before = read_file(file);
    if (before == content) continue;
    if (block.counts_whole) return file;
    if (name != kAboutData) continue;
    for (const std::string& domain : block.domains)
      if (part_of(before, domain) != part_of(content, domain)) return file;
  }
  return {};
}

}  // namespace

void require_same_data(const RunStore& store, const Experiment& experiment,
                       const std::function<const Dataset&(const DataConfig&)>& data_of) {
  std::map<std::string, Block> blocks;  // by the text of the data block
  Names read_now;
  for (const Run& run : experiment.runs) {
    const auto [block, is_new] = blocks.try_emplace(part_of_resolved(run.resolved_yaml, "data"));
    if (!is_new) continue;
    block->second = {data_of(run.config.data).files(), true, {}};
    for (const Source& source : sources_of(run.config.data))
      read_now.insert(source.files.begin(), source.files.end());
  }
  for (const std::string& run : store.runs()) {
    const std::filesystem::path folder = store.run_folder(run);
    const auto [text, config] = data_block_in(folder / "resolved.yaml");
    const auto [block, is_new] = blocks.try_emplace(text);
    if (is_new) {
      block->second.domains = shared_domains(config, read_now);
      block->second.counts_whole = block->second.domains.contains("");
      if (!block->second.domains.empty()) block->second.files = data_of(config).files();
    }
    const std::filesystem::path changed = changed_file(folder, block->second);
    if (changed.empty()) continue;
    throw ConfigError(fmt::format(
        "{}: cannot go on: the data have changed since {} was begun, {} would be another; runs on different "
        "data would stand in one comparison.\nWhat is to be run on other data is an execution of its own.",
        store.folder().string(), run, changed.string()));
  }
}

}  // namespace moelab

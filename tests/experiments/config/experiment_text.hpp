// Experiment files as texts in tests, and what is told of them.
#pragma once

#include "core/error.hpp"
#include "experiments/config/experiment.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace moelab {

// An experiment that is sound, in the parts that tests change.
inline const std::string kData = "data: {kind: synthetic, num_features: 16, num_targets: 16}\n";
inline const std::string kModel =
    "model:\n"
    "  kind: ffn\n"
    "  d_model: 16\n"
    "  num_layers: 1\n"
    "  ffn: {kind: dense, activation: relu, d_ff: 32}\n";
inline const std::string kTrain = "train: {max_steps: 10, batch_tokens: 32, optimizer: {lr: 1e-3}}\n";
inline const std::string kBase = "version: 1\n" + kData + kModel + kTrain;
inline const std::string kMoe =
    "kind: moe, experts: {count: 4, activation: relu, d_ff: 8}, router: {kind: top_k, top_k: 2}";

inline Experiment load(const std::string& text, const LoadOptions& options = {}) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "e.yaml") << text;
  return load_experiment(folder.path() / "e.yaml", options);
}

// What is told of it; empty where nothing is.
inline std::string errors(const std::string& text, const LoadOptions& options = {}) {
  try {
    load(text, options);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The same of the sound experiment with one thing in place of another.
inline std::string errors_with(const std::string& what, const std::string& instead) {
  std::string text = kBase;
  text.replace(text.find(what), what.size(), instead);
  return errors(text);
}

inline std::vector<std::string> names(const Experiment& e) {
  std::vector<std::string> out;
  for (const Run& run : e.runs) out.push_back(run.name);
  return out;
}

// Error where there is none of the name.
inline const Run& run_named(const Experiment& e, const std::string& name) {
  const auto found = std::find_if(e.runs.begin(), e.runs.end(), [&](const Run& r) { return r.name == name; });
  require(found != e.runs.end(), "[test] there is no run {}", name);
  return *found;
}

}  // namespace moelab

// The files that runs read: data, a tokenizer, the checkpoint that they start from.
#pragma once

#include "core/checkpoint.hpp"
#include "core/yaml.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/missing_data.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

class RunFiles {
 public:
  // Relative paths start at `folder`.
  RunFiles(const LoadOptions& options, std::filesystem::path folder)
      : look_for_data_(options.look_for_data),
        known_weights_(options.initial_weights),
        initial_weights_(options.initial_weights),
        initial_checksums_(options.initial_checksums),
        folder_(std::move(folder)) {}

  // Makes the paths in `config`, which was read from `tree`, those of files. What is missing or does not fit
  // is told at its place in the tree.
  void find(const yaml::Node& tree, RunConfig& config, Diagnostics& told);

  // See Experiment.
  const std::map<std::string, std::string>& initial_weights() const { return initial_weights_; }
  const std::map<std::string, std::string>& initial_checksums() const { return initial_checksums_; }

 private:
  void find_initial_weights(const yaml::Node& tree, RunConfig& config, Diagnostics& told);
  const std::string& problem_of_known(const std::string& file);
  const CheckpointReader& checkpoint_of(const std::string& file);
  void check_initial_tables(const yaml::Node& tree, const RunConfig& config, Diagnostics& told);
  const std::vector<MissingData>& missing_of(DataConfig data);

  bool look_for_data_;
  const std::map<std::string, std::string> known_weights_;
  std::map<std::string, std::string> initial_weights_;
  std::map<std::string, std::string> initial_checksums_;
  std::map<std::string, std::string> problems_;  // of initial weights of before, once looked for
  std::map<std::string, std::unique_ptr<const CheckpointReader>> checkpoints_;  // by file
  std::filesystem::path folder_;
  std::map<std::string, std::vector<MissingData>>
      missing_;  // by data block; listed once for all runs with it
};

}  // namespace moelab

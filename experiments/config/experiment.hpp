// An experiment file, checked and expanded into runs: one variant x one seed x one sweep point each.
#pragma once

#include "experiments/config/model_config.hpp"
#include "experiments/config/train_config.hpp"
#include "experiments/data/data_config.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

// What one run does: the part of the file that variants and sweeps patch.
struct RunConfig {
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
  EvalConfig eval;
  LogConfig log;
  void fields(FieldVisitor& v);
};

struct CompareConfig {
  std::optional<std::string> baseline;  // a variant; absent: the first
  std::string metric = "eval/loss";
  std::string match = "none";  // active_flops | active_params | total_params | none
  double tolerance = 0.02;     // relative difference of `match` between variants that is not remarked on
  double confidence = 0.95;    // of the intervals in the comparison
  void fields(FieldVisitor& v);
};

// One setting of the sweep: dotted keys and their values as YAML, in the order of the file.
struct SweepPoint {
  std::vector<std::pair<std::string, std::string>> settings;
};

struct Run {
  std::string name;     // <variant>-s<seed>[-p<point>][-t<tokens>]
  std::string variant;  // key under `variants`; "base" where there are none
  std::int64_t seed = 0;
  std::optional<Index> point;  // index into Experiment::points
  RunConfig config;
  std::string resolved_yaml;  // `config` with every default written out; reading it gives `config` again
  // Of train.branches. A branch goes on from its trunk, the longest one, after trunk_step steps; what it is
  // then is what it were if it had been trained alone.
  std::string trunk = {};  // name of a run; empty: no branch, or it starts at step 0
  std::int64_t trunk_step = 0;
  std::vector<std::int64_t> branch_steps = {};  // of a trunk: steps after which branches leave it
};

struct Experiment {
  std::string name;
  std::string description;
  std::filesystem::path file;
  std::string source;  // the text of the file
  std::vector<std::string> overrides;
  std::vector<std::string> variants;  // in the order of the file
  std::vector<std::int64_t> seeds;
  std::vector<SweepPoint> points;
  CompareConfig compare;
  std::vector<Run> runs;               // variant by variant, point by point, seed by seed
  std::vector<std::string> run_names;  // of all runs of the file, also where only some are selected
  // Checkpoints that runs start from: the path of model.init, made absolute, and the file that it means.
  std::map<std::string, std::string> initial_weights;
  std::map<std::string, std::string> initial_checksums;  // of these files, see hdf5::checksum_of
  std::vector<std::string> warnings;  // nothing wrong, but worth knowing; rendered, one a line
};

// Finds what makes the FFN of `twin` (the dense one, or its experts) cost the same as `target` by `match`,
// and sets it. Returns how near it comes, which becomes a warning; nothing where the cost is the same. Throws
// Error if there is no such width.
using TwinSolver =
    std::function<std::string(RunConfig& twin, const RunConfig& target, const std::string& match)>;

struct LoadOptions {
  std::vector<std::string> overrides;  // a.b=c, applied to the base before variants
  bool look_for_data = true;           // a data file that is missing is an error
  TwinSolver solve_twin;               // needed only by files with `twin_of`
  std::filesystem::path folder = {};   // where relative paths in the file start; empty: the file's own
  // As an earlier loading of the file found them. They are not looked for again; they may be gone, but not
  // have become other files.
  std::map<std::string, std::string> initial_weights = {};
  std::map<std::string, std::string> initial_checksums = {};
};

// Reads, checks and expands a whole experiment; nothing else is opened or written, except that data files are
// looked for. Throws ConfigError whose text holds every error found, each as
// `file:line:column: error: what`, with the line, a caret and a suggestion where a known name is near.
Experiment load_experiment(const std::filesystem::path& file, const LoadOptions& options);

}  // namespace moelab

// The experiment file as it is written, before variants and sweeps are applied.
#pragma once

#include "core/yaml.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/config/limits.hpp"

#include <string>
#include <vector>

namespace moelab {

struct SweepConfig {
  yaml::Node grid;               // dotted key: list of values
  yaml::Node zip;                // the same, lists of one length
  std::vector<yaml::Node> list;  // patches
  void fields(FieldVisitor& v);
};

// Everything but the blocks of a run, which stay YAML until they are patched.
struct ExperimentFile {
  Index version = 1;
  std::string name;
  std::string description;
  std::vector<std::int64_t> seeds = {0};
  yaml::Node data, model, train, eval, log;
  yaml::Node variants;
  SweepConfig sweep;
  CompareConfig compare;
  void fields(FieldVisitor& v);
};

// The fields of a whole file, blocks of a run included, for the schema and the documentation.
struct WholeFile {
  ExperimentFile file;
  RunConfig run;
  void fields(FieldVisitor& v);
};

// The blocks that make up a run, and that patches may change: data, model, train, eval, log.
const std::vector<std::string>& run_blocks();

// One entry of `variants:`.
struct VariantPatch {
  std::string name;
  Mark mark;
  std::vector<yaml::Node> patches;  // expanded; those of the variants it extends come first
  std::string twin_of;              // empty: none
  std::string match = "active_flops";
  Mark twin_mark;
};

// The variants in the order of the file; one named "base" without patches where there are none. A variant
// that extends nothing known or itself, and a key that is no part of a run, are errors.
std::vector<VariantPatch> read_variants(const yaml::Node& variants, Diagnostics& diagnostics);

// A block of the sweep: its settings are alternatives, blocks multiply.
struct SweepSetting {
  yaml::Node patch;                                          // expanded
  std::vector<std::pair<std::string, std::string>> entries;  // dotted keys and their values as YAML
  std::vector<std::string> only;                             // variants it holds for; empty: all
};
using SweepBlock = std::vector<SweepSetting>;

std::vector<SweepBlock> read_sweep(const SweepConfig& sweep, const std::vector<VariantPatch>& variants,
                                   Diagnostics& diagnostics);

// The points of a variant: every combination of the settings that hold for it. One empty point if there are
// none. Ends beyond kMaxRuns.
std::vector<std::vector<const SweepSetting*>> points_of(const std::vector<SweepBlock>& blocks,
                                                        const std::string& variant);

}  // namespace moelab

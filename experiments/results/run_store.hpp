// The folders of an experiment:
//
//   <root>/<name>/<timestamp>/              one execution of an experiment file
//       experiment.yaml                     as given
//       source_folder.txt                   where its relative paths start
//       experiment.json                     what is compared, and how
//       execution.json                      ExecutionRecord
//       lock                                held by the process that trains its runs
//       results.h5                          all its runs
//       <variant>-s<seed>[-p<point>][-t<tokens>]/
//                                           one run: resolved.yaml metrics.jsonl run.json run.h5 log.txt
//       checkpoints/
//   <root>/<name>/latest                    link to the newest timestamp
#pragma once

#include "core/file.hpp"
#include "experiments/config/limits.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moelab {

// A name that is one harmless path component: letters, digits, '_', '-', '.', '+', '=' stay, anything else
// becomes '_'; a leading '.' or '-' too. Error if nothing is left. At most kLongestName bytes.
std::string sanitised_name(const std::string& name);

// What an execution needs to be gone on with, besides the experiment file.
struct ExecutionRecord {
  std::vector<std::string> overrides = {};
  std::vector<std::string> runs = {};        // names of those that it trains, in the order of the file
  std::vector<std::string> other_runs = {};  // that the file has besides
  // Checkpoints that runs start from: the path of model.init, and the file that it meant.
  std::map<std::string, std::string> initial_weights = {};
  std::map<std::string, std::string> initial_checksums = {};  // of these files, see hdf5::checksum_of
  bool operator==(const ExecutionRecord&) const = default;
};

class RunStore {
 public:
  // Makes <root>/<name>/<UTC timestamp>/ with its first files, locked, and turns `latest` to
  // it. Two that start in the same second get different folders.
  static RunStore create(const std::filesystem::path& root, const std::string& name,
                         const std::string& experiment_yaml, const std::filesystem::path& source_folder,
                         const ExecutionRecord& record);
  // An existing timestamp folder (or `latest`).
  static RunStore open(const std::filesystem::path& folder);
  // Before anything is written to an existing folder. Error where another process has locked it.
  void lock();

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path results_path() const { return folder_ / "results.h5"; }
  std::filesystem::path info_path() const { return folder_ / "experiment.json"; }
  std::string experiment_yaml() const;
  // Where relative paths in experiment.yaml start.
  std::filesystem::path source_folder() const;
  // Error where there is none, or it is damaged.
  ExecutionRecord record() const;
  void set_record(const ExecutionRecord& record) const;

  // Makes the folder of a run, its checkpoints/ inside, and resolved.yaml.
  std::filesystem::path create_run(const std::string& run, const std::string& resolved_yaml) const;
  std::filesystem::path run_folder(const std::string& run) const;
  // Names of the runs that have a folder, in the order of the file; behind them, sorted, those that
  // execution.json does not name, which are all where it is missing or damaged.
  std::vector<std::string> runs() const;
  // Their run.h5, of those that have one.
  std::vector<std::filesystem::path> run_files() const;

 private:
  explicit RunStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
  std::optional<FileLock> lock_;
};

}  // namespace moelab

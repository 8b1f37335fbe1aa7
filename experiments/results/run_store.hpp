// The folders of an experiment:
//
//   <root>/<name>/<timestamp>/              one execution of an experiment file
//       experiment.yaml  overrides.txt      as given
//       experiment.json                     what is compared, and how
//       results.h5                          all its runs
//       <variant>-s<seed>[-p<point>][-t<tokens>]/
//                                           one run: resolved.yaml metrics.jsonl run.json run.h5 log.txt
//       checkpoints/
//   <root>/<name>/latest                    link to the newest timestamp
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

// A name that is one harmless path component: letters, digits, '_', '-', '.', '+', '=' stay, anything else
// becomes
// '_'; a leading '.' or '-' too. Error if nothing is left. At most 100 bytes.
std::string sanitised_name(const std::string& name);

class RunStore {
 public:
  // Makes <root>/<name>/<UTC timestamp>/ with experiment.yaml and overrides.txt, and turns `latest` to it.
  // Two that start in the same second get different folders.
  static RunStore create(const std::filesystem::path& root, const std::string& name,
                         const std::string& experiment_yaml, const std::vector<std::string>& overrides);
  // An existing timestamp folder (or `latest`).
  static RunStore open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path results_path() const { return folder_ / "results.h5"; }
  std::filesystem::path info_path() const { return folder_ / "experiment.json"; }
  std::string experiment_yaml() const;
  std::vector<std::string> overrides() const;

  // Makes the folder of a run, its checkpoints/ inside, and resolved.yaml.
  std::filesystem::path create_run(const std::string& run, const std::string& resolved_yaml) const;
  std::filesystem::path run_folder(const std::string& run) const;
  // Names of the runs that have a folder, sorted.
  std::vector<std::string> runs() const;
  // Their run.h5, of those that have one.
  std::vector<std::filesystem::path> run_files() const;

 private:
  explicit RunStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

}  // namespace moelab

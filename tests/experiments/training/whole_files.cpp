#include "tests/experiments/training/whole_files.hpp"

#include "core/checkpoint.hpp"
#include "core/file.hpp"
#include "core/yaml.hpp"
#include "experiments/results/results_file.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

namespace moelab {

namespace fs = std::filesystem;

namespace {

void check_yaml(const fs::path& path) {
  Diagnostics diagnostics;
  const yaml::Node root = yaml::parse(read_file(path), yaml::read_source(path.string()), diagnostics);
  CHECK(diagnostics.num_errors() == 0);
  CHECK(root.is_mapping());
}

}  // namespace

int check_whole_files(const fs::path& root) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const fs::path& path = entry.path();
    const std::string extension = path.extension().string();
    INFO(path);
    if (extension == ".h5" && path.parent_path().filename() == "checkpoints") {
      CHECK_NOTHROW(CheckpointReader(path).verify());
    } else if (extension == ".h5") {
      CHECK_NOTHROW(ResultsFile(path).reader().group());
    } else if (extension == ".json") {
      CHECK(nlohmann::json::parse(read_file(path), nullptr, false).is_object());
    } else if (extension == ".yaml") {
      check_yaml(path);
    } else if (extension == ".html") {
      CHECK(read_file(path).find("</html>") != std::string::npos);
    } else {
      continue;
    }
    ++files;
  }
  return files;
}

}  // namespace moelab

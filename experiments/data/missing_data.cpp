#include "experiments/data/missing_data.hpp"

#include "experiments/data/idx_file.hpp"
#include "experiments/data/image_dataset.hpp"
#include "experiments/data/text_files.hpp"

#include <fmt/format.h>

namespace moelab {

std::string MissingData::message() const {
  const std::string what = fmt::format("no file at {} (domain {})", path, domain);
  return package.empty() ? what : fmt::format("{}: install the package {}", what, package);
}

std::vector<MissingData> missing_data(const DataConfig& config) {
  std::vector<MissingData> missing;
  if (config.kind == "images") {
    for (const std::string& file : image_files(config.images)) {
      if (find_idx_file(file).empty()) missing.push_back({"images", file, config.images.package});
    }
  }
  if (config.kind != "text") return missing;
  for (const TextDomain& domain : config.text.domains) {
    for (const std::string& path : domain.path) {
      if (find_files(path).empty()) missing.push_back({domain.name, path, domain.package});
    }
  }
  return missing;
}

}  // namespace moelab

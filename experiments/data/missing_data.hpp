// Text that is not on this machine.
#pragma once

#include "experiments/data/data_config.hpp"

#include <string>
#include <vector>

namespace moelab {

// A path of a domain that leads to no file.
struct MissingData {
  std::string domain;
  std::string path;
  std::string package;  // that brings it; empty: not known
  // "no file at PATH (domain NAME): install the package PACKAGE"
  std::string message() const;
};

// What of a resolved data block (see corpus.hpp) is not there. Looks at names only: no file is opened.
std::vector<MissingData> missing_data(const DataConfig& config);

}  // namespace moelab

// The data of the runs of one program: loaded once for all that share it.
#pragma once

#include "experiments/data/data_config.hpp"
#include "experiments/data/make_dataset.hpp"

#include <map>
#include <memory>
#include <string>

namespace moelab {

class DatasetCache {
 public:
  explicit DatasetCache(DataOptions options) : options_(std::move(options)) {}

  // Loads what is not there yet; that is for one thread alone.
  const Dataset& get(const DataConfig& config);

 private:
  DataOptions options_;
  std::map<std::string, std::unique_ptr<const Dataset>> loaded_;  // by data block
};

}  // namespace moelab

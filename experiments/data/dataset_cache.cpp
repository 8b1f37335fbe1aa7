#include "experiments/data/dataset_cache.hpp"

#include "core/fields_writer.hpp"

namespace moelab {

const Dataset& DatasetCache::get(const DataConfig& config) {
  DataConfig key = config;
  std::unique_ptr<const Dataset>& entry = loaded_[yaml::emit(write_fields(key))];
  if (!entry) entry = make_dataset(config, options_);
  return *entry;
}

}  // namespace moelab

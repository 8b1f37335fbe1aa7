// From the `model:` block of an experiment to the model.
#pragma once

#include "experiments/config/model_config.hpp"
#include "experiments/models/model.hpp"

#include <memory>

namespace moelab {

// What a model must know of its data.
struct DataShape {
  Index seq_len = 0;
  Index vocab_size = 0;    // 0: not tokens
  Index num_features = 0;  // 0: tokens
  Index num_targets = 0;   // width of regression targets; 0: none
  Index num_classes = 0;   // of a sequence; 0: none
};
DataShape shape_of(const Dataset& data);

// The config must be valid: read through fields(), which checks it. No parameter gets storage. Error where
// the kind of model does not fit the data.
std::unique_ptr<Model> make_model(const ModelConfig& config, const DataShape& data);

}  // namespace moelab

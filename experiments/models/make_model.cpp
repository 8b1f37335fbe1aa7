#include "experiments/models/make_model.hpp"

#include "core/error.hpp"
#include "experiments/models/classifier.hpp"
#include "experiments/models/decoder.hpp"
#include "experiments/models/encoder.hpp"
#include "experiments/models/ffn_model.hpp"

namespace moelab {

DataShape shape_of(const Dataset& data) {
  return {data.seq_len(), data.vocab_size(), data.num_features(), data.num_targets(), data.num_classes()};
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const DataShape& data) {
  if (config.kind == "encoder" && data.num_classes > 0) {
    return std::make_unique<Classifier>(config, data.num_features, data.num_classes, data.seq_len);
  }
  if (config.kind == "decoder" || config.kind == "encoder") {
    if (data.vocab_size == 0) {
      throw ConfigError(fmt::format(
          "[model] kind {} needs tokens, and the data are not; kind ffn takes features, kind encoder images",
          config.kind));
    }
    if (config.kind == "decoder") return std::make_unique<Decoder>(config, data.vocab_size, data.seq_len);
    return std::make_unique<Encoder>(config, data.vocab_size, data.seq_len);
  }
  if (config.kind == "ffn") {
    if (data.num_features == 0 || data.num_targets == 0) {
      throw ConfigError(
          "[model] kind ffn needs features and regression targets, and the data are tokens; "
          "kind decoder takes tokens");
    }
    return std::make_unique<FfnModel>(config, data.num_features, data.num_targets);
  }
  throw ConfigError(fmt::format("[model] kind '{}' is not one of decoder, encoder, ffn", config.kind));
}

}  // namespace moelab

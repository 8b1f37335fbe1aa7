#include "experiments/data/make_dataset.hpp"

#include "core/error.hpp"
#include "experiments/data/synthetic_dataset.hpp"
#include "experiments/data/text_dataset.hpp"

namespace moelab {

std::unique_ptr<const Dataset> make_dataset(const DataConfig& config, const DataOptions& options) {
  if (config.kind == "text") return std::make_unique<TextDataset>(config.text, options);
  if (config.kind == "synthetic") return std::make_unique<SyntheticDataset>(config.synthetic);
  fail("[data] no kind \"{}\": there are text and synthetic", config.kind);
}

}  // namespace moelab

#include "experiments/config/recorded_metrics.hpp"

namespace moelab {

std::vector<std::string> recorded_metrics(const RunConfig& config) {
  std::vector<std::string> names = {"eval/loss"};
  for (const std::string& domain : config.data.domain_names()) names.push_back("eval/loss/" + domain);
  if (config.data.kind == "text") names.emplace_back("eval/bits_per_byte");
  if (config.data.kind == "images") names.emplace_back("eval/accuracy");
  for (const char* name : {"loss", "lr", "grad_norm", "step_seconds", "tokens_per_second"})
    names.push_back(std::string("train/") + name);
  names.emplace_back("train/active_compute_ratio");
  for (Index layer = 0; layer < config.model.num_layers; ++layer) {
    const moe::FfnConfig& ffn = config.model.ffn_of(layer);
    if (ffn.kind != "moe") continue;
    for (const std::string& loss : ffn.moe.loss_names()) names.push_back("train/aux_" + loss);
  }
  return names;
}

}  // namespace moelab

#include "experiments/config/recorded_metrics.hpp"

#include "moe/statistics.hpp"

#include <algorithm>

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

MixtureSizes mixture_sizes(const ModelConfig& model) {
  MixtureSizes sizes;
  for (Index layer = 0; layer < model.num_layers; ++layer) {
    const moe::FfnConfig& ffn = model.ffn_of(layer);
    if (ffn.kind != "moe") continue;
    ++sizes.num_layers;
    sizes.num_experts = std::max(sizes.num_experts, ffn.moe.num_experts());
  }
  return sizes;
}

double routing_record_bytes(const RunConfig& config) {
  constexpr double kCopies = 4;          // as counted, as recorded, as a dataset, and in the file's image
  constexpr double kBytesOfExpert = 16;  // tokens, dropped, probability and bias at one record
  const MixtureSizes sizes = mixture_sizes(config.model);
  const auto layers = static_cast<double>(sizes.num_layers);
  const auto experts = static_cast<double>(sizes.num_experts);
  const auto records = static_cast<double>(config.train.num_steps() / config.log.routing_every_steps);
  const auto domains = static_cast<double>(config.data.num_domains());
  const double pairs = moe::counts_pairs(sizes.num_layers, sizes.num_experts) ? experts : 0;
  return kCopies * layers * experts * (kBytesOfExpert * records + sizeof(std::int64_t) * (pairs + domains));
}

}  // namespace moelab

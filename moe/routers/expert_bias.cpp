#include "moe/routers/expert_bias.hpp"

#include "core/error.hpp"

#include <numeric>
#include <vector>

namespace moelab::moe {

void ExpertBiasConfig::fields(FieldVisitor& v) {
  v("rate", rate, {.help = "Step of the bias, once per optimizer step", .min = 0, .min_exclusive = true});
  v("update", update,
    {.help = "Move by the sign of the load's deviation, or in proportion to it",
     .choices = {"sign", "proportional"}});
  v("center", center, {.help = "Subtract the mean of the change, so that the biases keep their sum"});
}

void update_expert_bias(const ExpertBiasConfig& config, std::span<const std::int64_t> expert_tokens,
                        Matrix& bias) {
  require(bias.size() == static_cast<Index>(expert_tokens.size()),
          "[expert_bias] counts of {} experts, {} biases", expert_tokens.size(), bias.size());
  const double total =
      static_cast<double>(std::accumulate(expert_tokens.begin(), expert_tokens.end(), std::int64_t{0}));
  if (total == 0) return;
  const double mean = total / static_cast<double>(expert_tokens.size());
  std::vector<double> change;
  for (const std::int64_t count : expert_tokens) {
    const double missing = mean - static_cast<double>(count);
    const double sign = missing > 0 ? 1.0 : (missing < 0 ? -1.0 : 0.0);
    change.push_back(config.rate * (config.update == "sign" ? sign : missing / mean));
  }
  const double mean_change =
      config.center ? std::accumulate(change.begin(), change.end(), 0.0) / static_cast<double>(change.size())
                    : 0.0;
  for (Index e = 0; e < bias.size(); ++e) {
    bias(0, e) += static_cast<Scalar>(change[static_cast<std::size_t>(e)] - mean_change);
  }
}

}  // namespace moelab::moe

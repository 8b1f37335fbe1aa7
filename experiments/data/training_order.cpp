#include "experiments/data/training_order.hpp"

#include "core/error.hpp"
#include "experiments/data/shuffle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moelab {
namespace {

// The largest remainder method over what is left after one sequence for each domain.
std::vector<Index> make_quotas(const std::vector<double>& weights, Index block) {
  const auto num_domains = static_cast<Index>(weights.size());
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Index> quotas(weights.size(), 1);
  std::vector<double> wanted;
  for (const double weight : weights) wanted.push_back(weight / sum * static_cast<double>(block));
  for (Index left = block - num_domains; left > 0; --left) {
    std::size_t poorest = 0;
    const auto lack = [&](std::size_t d) { return wanted[d] - static_cast<double>(quotas[d]); };
    for (std::size_t d = 1; d < weights.size(); ++d) {
      if (lack(d) > lack(poorest)) poorest = d;
    }
    ++quotas[poorest];
  }
  return quotas;
}

}  // namespace

TrainingOrder::TrainingOrder(const std::vector<double>& weights, std::vector<std::int64_t> num_windows)
    : num_windows_(std::move(num_windows)) {
  require(!weights.empty() && weights.size() <= kBlock, "[training_order] {} domains: 1 to {} are possible",
          weights.size(), kBlock);
  require(weights.size() == num_windows_.size(), "[training_order] {} weights for {} domains", weights.size(),
          num_windows_.size());
  for (std::size_t d = 0; d < weights.size(); ++d) {
    require(std::isfinite(weights[d]) && weights[d] > 0,
            "[training_order] weight {} of domain {}: must be positive", weights[d], d);
    require(num_windows_[d] > 0, "[training_order] domain {} has no window", d);
  }
  quotas_ = make_quotas(weights, kBlock);
}

TrainingOrder::Place TrainingOrder::at(std::uint64_t seed, std::int64_t sequence) const {
  require(sequence >= 0, "[training_order] sequence {} is negative", sequence);
  const std::int64_t block = sequence / kBlock;
  const Shuffle places(kBlock, random::Stream(seed, "data/domains", static_cast<std::uint64_t>(block)));
  Index rank = places(sequence % kBlock);  // within the block, and then within the domain
  Index domain = 0;
  while (rank >= quotas_[domain]) rank -= quotas_[domain++];

  const std::int64_t count = block * quotas_[domain] + rank;  // sequences of the domain before this one
  const std::int64_t epoch = count / num_windows_[domain];
  const random::Stream stream(seed, fmt::format("data/windows/{}", domain),
                              static_cast<std::uint64_t>(epoch));
  return {domain, epoch, Shuffle(num_windows_[domain], stream)(count % num_windows_[domain])};
}

}  // namespace moelab

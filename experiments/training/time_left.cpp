#include "experiments/training/time_left.hpp"

#include "experiments/results/run_data.hpp"

#include <numeric>

namespace moelab {

TimeLeft::TimeLeft(const std::vector<Run>& runs) : seen_(runs.size(), 0.0) {
  for (const Run& run : runs) {
    const TrainConfig& train = run.config.train;
    total_.push_back(static_cast<double>((train.num_steps() - run.trunk_step) * train.batch_tokens));
  }
}

double TimeLeft::seconds() const {
  const double total = std::accumulate(total_.begin(), total_.end(), 0.0);
  const double seen = std::accumulate(seen_.begin(), seen_.end(), 0.0);
  if (seen <= 0) return kNotMeasured;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  return spent.count() / seen * (total - seen);
}

}  // namespace moelab

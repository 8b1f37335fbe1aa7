#include "experiments/training/time_left.hpp"

#include "experiments/results/run_data.hpp"

#include <algorithm>

namespace moelab {

TimeLeft::TimeLeft(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    const auto batch = static_cast<double>(run.config.train.batch_tokens);
    batch_.push_back(batch);
    total_.push_back(static_cast<double>(run.config.train.num_steps()) * batch);
    first_.push_back(static_cast<double>(run.trunk_step) * batch);
  }
  seen_ = first_;
}

void TimeLeft::begin(std::size_t run, std::int64_t steps) {
  first_[run] = seen_[run] = static_cast<double>(steps) * batch_[run];
}

void TimeLeft::update(std::size_t run, std::int64_t steps) {
  seen_[run] = std::max(seen_[run], static_cast<double>(steps) * batch_[run]);
}

double TimeLeft::seconds_after(std::chrono::duration<double> spent) const {
  double done = 0;
  double rest = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    done += seen_[i] - first_[i];
    rest += total_[i] - seen_[i];
  }
  return done > 0 ? spent.count() / done * rest : kNotMeasured;
}

}  // namespace moelab

#include "experiments/training/time_left.hpp"

#include "experiments/results/run_data.hpp"

#include <algorithm>

namespace moelab {

namespace {

constexpr std::chrono::seconds kWorthTelling(3);

}  // namespace

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

void TimeLeft::update(std::size_t run, std::int64_t steps, std::chrono::duration<double> at) {
  seen_[run] = std::max(seen_[run], static_cast<double>(steps) * batch_[run]);
  if (measured_from_ || done() == 0) return;
  measured_from_ = at;
  done_before_ = done();
}

double TimeLeft::done() const {
  double done = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) done += seen_[i] - first_[i];
  return done;
}

double TimeLeft::seconds_at(std::chrono::duration<double> at) const {
  if (!measured_from_) return kNotMeasured;
  const std::chrono::duration<double> spent = at - *measured_from_;
  const double measured = done() - done_before_;
  if (spent < kWorthTelling || measured <= 0) return kNotMeasured;
  double rest = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) rest += total_[i] - seen_[i];
  return spent.count() / measured * rest;
}

}  // namespace moelab

// How long the runs of an experiment still take.
#pragma once

#include "experiments/config/experiment.hpp"

#include <chrono>
#include <vector>

namespace moelab {

// Goes by what training tokens took in this execution. Of several threads, one at a time may call it.
class TimeLeft {
 public:
  explicit TimeLeft(const std::vector<Run>& runs);
  // The run of that number begins after so many steps.
  void begin(std::size_t run, std::int64_t steps);
  // It has taken so many steps.
  void update(std::size_t run, std::int64_t steps);
  // It takes no more, however it ended.
  void end(std::size_t run) { total_[run] = seen_[run]; }
  // NaN until something is known.
  double seconds() const { return seconds_after(std::chrono::steady_clock::now() - start_); }
  // The same, where what was seen took that long.
  double seconds_after(std::chrono::duration<double> spent) const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  // Tokens of each run: of a step, all in all, before this execution, now.
  std::vector<double> batch_, total_, first_, seen_;
};

}  // namespace moelab

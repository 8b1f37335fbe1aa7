// How long the runs of an experiment still take.
#pragma once

#include "experiments/config/experiment.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace moelab {

// Goes by what training tokens took in this execution, from the first step that was seen on: what comes
// before it (models that are made, first evaluations, first products) says nothing of the rest. Of several
// threads, one at a time may call it.
class TimeLeft {
 public:
  explicit TimeLeft(const std::vector<Run>& runs);
  // The run of that number begins after so many steps.
  void begin(std::size_t run, std::int64_t steps);
  // It has taken so many steps.
  void update(std::size_t run, std::int64_t steps) { update(run, steps, since_start()); }
  // The same, so long after the start.
  void update(std::size_t run, std::int64_t steps, std::chrono::duration<double> at);
  // It takes no more, however it ended.
  void end(std::size_t run) { total_[run] = seen_[run]; }
  // NaN until a few seconds of steps are known.
  double seconds() const { return seconds_at(since_start()); }
  // The same, so long after the start.
  double seconds_at(std::chrono::duration<double> at) const;

 private:
  std::chrono::duration<double> since_start() const { return std::chrono::steady_clock::now() - start_; }
  double done() const;

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::duration<double>> measured_from_;
  double done_before_ = 0;  // tokens, when that began
  // Tokens of each run: of a step, all in all, before this execution, now.
  std::vector<double> batch_, total_, first_, seen_;
};

}  // namespace moelab

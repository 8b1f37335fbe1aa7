// How long the runs of an experiment still take.
#pragma once

#include "experiments/config/experiment.hpp"

#include <chrono>
#include <vector>

namespace moelab {

// Goes by the share of all training tokens that is done. Of several threads, one at a time may call it.
class TimeLeft {
 public:
  explicit TimeLeft(const std::vector<Run>& runs);
  // The run of that number has seen so many tokens.
  void update(std::size_t run, double tokens) { seen_[run] = tokens; }
  // The run needs no more training in this execution.
  void skip(std::size_t run) { total_[run] = seen_[run] = 0; }
  // NaN until something is known.
  double seconds() const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<double> total_;  // tokens of each run
  std::vector<double> seen_;
};

}  // namespace moelab

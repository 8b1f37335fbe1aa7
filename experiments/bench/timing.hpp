// Times of a repeated piece of work.
#pragma once

#include <functional>
#include <vector>

namespace moelab::bench {

// Seconds of one run.
struct Timing {
  double median = 0;
  double fastest = 0;
  int repeats = 0;
  // The middle half of the times, relative to the median.
  double spread = 0;
};
// Of at least one time.
Timing summarize(std::vector<double> seconds);

struct Repeats {
  int warmup = 2;
  int least = 5;
  double seconds = 1;  // go on until this much was measured
  int most = 200;
};
Timing measure(const Repeats& repeats, const std::function<void()>& work);

// Measures several pieces of work in turn, one run of each after another, so that a machine that drifts
// drifts for all of them. One result for each.
std::vector<Timing> measure_in_turn(const Repeats& repeats, const std::vector<std::function<void()>>& works);

}  // namespace moelab::bench

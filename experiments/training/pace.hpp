// When to repeat a task that takes longer each time, such as writing all results so far.
#pragma once

namespace moelab {

// Due at once, and again when 19 times as long as the last turn took has passed since: a twentieth of the
// time at most goes into it. Who needs a turn at the end of the work takes it whether it is due or not.
class Pace {
 public:
  // Seconds since any start.
  bool is_due(double now) const { return now >= next_; }
  void took(double begin, double end) { next_ = end + kRest * (end - begin); }

 private:
  static constexpr double kRest = 19;
  double next_ = 0;
};

}  // namespace moelab

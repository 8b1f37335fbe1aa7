// How often something is done whose cost grows while work goes on.
#pragma once

namespace moelab {

// Done as often as it takes no more than a twentieth of the time, wherever it must not be missed at the end.
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

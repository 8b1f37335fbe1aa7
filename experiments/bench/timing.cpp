#include "experiments/bench/timing.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <chrono>

namespace moelab::bench {

namespace {

// Linear interpolation between the two values around the place.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Timing summarize(std::vector<double> seconds) {
  require(!seconds.empty(), "[bench] no times to summarize");
  std::sort(seconds.begin(), seconds.end());
  Timing timing;
  timing.median = quantile(seconds, 0.5);
  timing.fastest = seconds.front();
  timing.repeats = static_cast<int>(seconds.size());
  timing.spread = (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / timing.median;
  return timing;
}

std::vector<Timing> measure_in_turn(const Repeats& repeats, const std::vector<std::function<void()>>& works) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < repeats.warmup; ++i) {
    for (const auto& work : works) work();
  }
  std::vector<std::vector<double>> times(works.size());
  double total = 0;
  for (int i = 0; i < repeats.most && (i < repeats.least || total < repeats.seconds); ++i) {
    for (std::size_t w = 0; w < works.size(); ++w) {
      const Clock::time_point start = Clock::now();
      works[w]();
      times[w].push_back(std::chrono::duration<double>(Clock::now() - start).count());
      total += times[w].back() / static_cast<double>(works.size());
    }
  }
  std::vector<Timing> timings;
  for (std::vector<double>& seconds : times) timings.push_back(summarize(std::move(seconds)));
  return timings;
}

Timing measure(const Repeats& repeats, const std::function<void()>& work) {
  return measure_in_turn(repeats, {work}).front();
}

}  // namespace moelab::bench

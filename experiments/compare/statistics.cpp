#include "experiments/compare/statistics.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>

namespace moelab {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kResamples = 10000;

// Linear interpolation between the order statistics of sorted values.
double quantile(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return kNan;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return kNan;
  const double centre = mean(values);
  double sum = 0;
  for (const double v : values) sum += (v - centre) * (v - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

Interval t_interval(std::span<const double> values, double confidence) {
  if (values.size() < kSeedsForInterval) return {kNan, kNan};
  const auto n = static_cast<double>(values.size());
  const boost::math::students_t distribution(n - 1);
  const double t = boost::math::quantile(distribution, (1 + confidence) / 2);
  const double half = t * standard_deviation(values) / std::sqrt(n);
  const double centre = mean(values);
  return {centre - half, centre + half};
}

Interval bootstrap_interval(std::span<const double> values, double confidence) {
  if (values.size() < kSeedsForInterval) return {kNan, kNan};
  const random::Stream stream(0, "bootstrap");
  std::vector<double> means(kResamples);
  std::uint64_t draw = 0;
  for (double& m : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[stream.below(draw++, values.size())];
    m = sum / static_cast<double>(values.size());
  }
  std::ranges::sort(means);
  return {quantile(means, (1 - confidence) / 2), quantile(means, (1 + confidence) / 2)};
}

double t_test_p_value(std::span<const double> values) {
  if (values.size() < kSeedsForInterval) return kNan;
  const double centre = mean(values);
  const double error = standard_deviation(values) / std::sqrt(static_cast<double>(values.size()));
  if (error == 0) return centre == 0 ? 1 : 0;
  const boost::math::students_t distribution(static_cast<double>(values.size() - 1));
  return 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(centre / error)));
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i)
    if (!std::isnan(p_values[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(order.size() - rank);
    largest = std::min(1.0, std::max(largest, scaled));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

}  // namespace moelab

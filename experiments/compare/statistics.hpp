// Means over seeds with their uncertainty. Values are finite; what is not measured is left out before.
#pragma once

#include <span>
#include <vector>

namespace moelab {

struct Interval {
  double low, high;  // NaN: not known
};

inline constexpr std::size_t kSeedsForInterval = 3;  // fewer give no interval and no p-value

double mean(std::span<const double> values);                // NaN of none
double standard_deviation(std::span<const double> values);  // of a sample (n - 1); NaN of fewer than two

// Student-t interval of the mean: mean +- t_{(1 + confidence) / 2, n - 1} s / sqrt(n). NaN of fewer than 3
// values.
Interval t_interval(std::span<const double> values, double confidence);

// Percentile bootstrap interval of the mean (Efron 1979) from 10,000 resamples that are the same on each
// call. NaN of fewer than 3 values.
Interval bootstrap_interval(std::span<const double> values, double confidence);

// Two-sided p-value of a mean of 0 (Student 1908). NaN of fewer than 3 values; 0 or 1 where all are equal.
double t_test_p_value(std::span<const double> values);

// Holm's step-down correction (1979): p-values of a family, in the order given; NaN stay and do not count.
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace moelab

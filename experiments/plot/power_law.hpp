// L(C) = c + a C^-alpha, fitted as in Hoffmann et al. (2022), appendix D.2: Huber loss (delta = 1e-3) of the
// difference of log L, from a grid of starts.
#pragma once

#include "experiments/compare/statistics.hpp"

#include <optional>
#include <span>

namespace moelab::plot {

struct PowerLaw {
  double c = 0, a = 0, alpha = 0;
  Interval alpha_interval{0, 0};  // percentile bootstrap over the points
  double at(double size) const;
};

// Nothing where there are fewer than four different sizes, since three parameters would go through anything,
// or where the largest is less than twice the smallest, since an exponent says nothing then.
std::optional<PowerLaw> fit_power_law(std::span<const double> size, std::span<const double> loss,
                                      double confidence = 0.95);

}  // namespace moelab::plot

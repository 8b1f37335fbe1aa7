// What equal loss costs, read off two loss curves.
#pragma once

#include "experiments/compare/comparison.hpp"

#include <span>
#include <utility>
#include <vector>

namespace moelab {

// A loss over its cost (training FLOPs, seconds, parameters), in the order of rising cost.
struct CostCurve {
  std::vector<double> cost, loss;  // (n)
};

// The cost at which the lowest loss so far first is `target`, interpolated between evaluations (log-linear in
// the cost). NaN where the curve never gets there, or was there at its first evaluation.
double cost_to_reach(const CostCurve& curve, double target);

// cost_to_reach of the baseline / of the variant, for the lowest loss that both reach. NaN where the curves
// do not overlap.
double cost_ratio(const CostCurve& baseline, const CostCurve& variant);

// The loss at the end over the size of the model: the lowest of each size, in the order of rising size, for
// cost_to_reach.
CostCurve size_curve(std::vector<std::pair<double, double>> size_and_loss);

// Geometric mean and interval of one ratio a seed; NaN are counted as not reached.
Ratio mean_ratio(std::span<const double> ratios, double confidence);

}  // namespace moelab

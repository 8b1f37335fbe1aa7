#include "experiments/compare/efficiency.hpp"

#include "experiments/compare/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moelab {

namespace {

double lowest(const CostCurve& curve) {
  double result = std::numeric_limits<double>::quiet_NaN();
  for (const double loss : curve.loss) result = std::fmin(result, loss);
  return result;
}

}  // namespace

double cost_to_reach(const CostCurve& curve, double target) {
  double previous_loss = kNotMeasured;
  double previous_cost = kNotMeasured;
  for (std::size_t i = 0; i < curve.loss.size(); ++i) {
    const double loss = curve.loss[i];
    if (std::isnan(loss) || std::isnan(curve.cost[i]) || loss >= previous_loss) continue;
    if (loss <= target) {
      if (std::isnan(previous_loss)) return kNotMeasured;
      const double share = (previous_loss - target) / (previous_loss - loss);
      if (previous_cost <= 0) return std::lerp(previous_cost, curve.cost[i], share);
      return std::exp(std::lerp(std::log(previous_cost), std::log(curve.cost[i]), share));
    }
    previous_loss = loss;
    previous_cost = curve.cost[i];
  }
  return kNotMeasured;
}

double cost_ratio(const CostCurve& baseline, const CostCurve& variant) {
  const double target = std::max(lowest(baseline), lowest(variant));
  return cost_to_reach(baseline, target) / cost_to_reach(variant, target);
}

CostCurve size_curve(std::vector<std::pair<double, double>> size_and_loss) {
  std::ranges::sort(size_and_loss);  // of one size, the lowest loss comes first
  CostCurve curve;
  for (const auto& [size, loss] : size_and_loss) {
    if (!curve.cost.empty() && curve.cost.back() == size) continue;
    curve.cost.push_back(size);
    curve.loss.push_back(loss);
  }
  return curve;
}

Ratio mean_ratio(std::span<const double> ratios, double confidence) {
  Ratio result;
  std::vector<double> logarithms;
  for (const double r : ratios) {
    if (std::isfinite(r) && r > 0) {
      result.values.push_back(r);
      logarithms.push_back(std::log(r));
    } else {
      ++result.num_not_reached;
    }
  }
  result.mean = std::exp(mean(logarithms));
  const Interval t = t_interval(logarithms, confidence);
  result.t = {std::exp(t.low), std::exp(t.high)};
  return result;
}

}  // namespace moelab

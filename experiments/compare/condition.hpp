// A condition on a comparison, for scripts: "delta > 0", "moe_e8k2.delta_ci_high >= -0.01".
#pragma once

#include "experiments/compare/comparison.hpp"

#include <string>

namespace moelab {

struct Condition {
  std::string variant;   // empty: every variant but the baseline
  std::string figure;    // a name of figure_names()
  std::string relation;  // < <= > >= == !=
  double value = 0;
};

// Throws ConfigError saying what a condition looks like.
Condition parse_condition(const std::string& text);

// Whether it holds for one of the variants, and for which, in words; empty where it holds for none. Error
// where a figure is not known (an interval of two seeds, say) or there is no such variant: neither yes nor
// no.
std::string holds_for(const Condition& condition, const Comparison& comparison);

}  // namespace moelab

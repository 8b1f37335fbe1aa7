// The figures of a comparison by their names, for programs.
#pragma once

#include "experiments/compare/comparison.hpp"

#include <string>
#include <vector>

namespace moelab {

// The figures of a variant by the names that csv and json give them: mean, delta, delta_ci_low,
// relative_compute, ...
const std::vector<std::string>& figure_names();
// NaN where it is not known. Error if there is no such figure.
double figure(const VariantResult& variant, const std::string& name);

// Every figure of every variant, exactly.
std::string figures_as_csv(const Comparison& comparison);
std::string figures_as_json(const Comparison& comparison);

}  // namespace moelab

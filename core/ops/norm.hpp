// Normalisation of each row, and its gain and bias.
#pragma once

#include "core/autograd.hpp"

namespace moelab::ops {

// (x - mean) / sqrt(var + epsilon) * g + b with the biased variance (Ba et al. 2016). With epsilon_outside:
// (x - mean) / (std + epsilon) * g + b. x: (N, d); g, b: (1, d), both undefined for no affine part.
Variable layer_norm(const Variable& x, const Variable& g, const Variable& b, double epsilon,
                    bool epsilon_outside = false);

// x / sqrt(mean(x^2) + epsilon) * g (Zhang and Sennrich 2019). x: (N, d); g: (1, d).
Variable rms_norm(const Variable& x, const Variable& g, double epsilon);

}  // namespace moelab::ops

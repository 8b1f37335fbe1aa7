// Entry-by-entry operations on the tape.
//
// The operands of the binary operations are broadcast to a common shape (rows, cols): each of them has that
// shape, or is a row (1, cols), a column (rows, 1) or a scalar (1, 1). Anything else is an error.
#pragma once

#include "core/autograd.hpp"

namespace moelab::ops {

Variable add(const Variable& a, const Variable& b);
Variable subtract(const Variable& a, const Variable& b);
Variable multiply(const Variable& a, const Variable& b);
Variable divide(const Variable& a, const Variable& b);

Variable scale(const Variable& x, double factor);       // factor x
Variable add_constant(const Variable& x, double term);  // x + term
Variable negate(const Variable& x);

Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);
Variable square(const Variable& x);
Variable tanh(const Variable& x);
Variable sigmoid(const Variable& x);
Variable softplus(const Variable& x);  // log(1 + e^x), without overflow
Variable relu(const Variable& x);      // gradient 0 at 0
// The gradient passes where low <= x <= high.
Variable clamp(const Variable& x, double low, double high);
// Phi(x), the distribution function of the standard normal.
Variable normal_cdf(const Variable& x);

}  // namespace moelab::ops

// Finding where a value stopped being finite.
#pragma once

#include "core/context.hpp"
#include "core/optim.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"

#include <string>

namespace moelab {

// model.forward(), with the step added to the message of a NonFiniteError that comes out of it.
ModelOutput checked_forward(Model& model, const Batch& batch, const ForwardContext& context);

// Repeats the forward pass with an observer and throws a NonFiniteError that names the step and the first
// parameter or sub-layer output that is not finite, or `what` if all of them are.
[[noreturn]] void name_non_finite(Model& model, const Batch& batch, const ForwardContext& context,
                                  const std::string& what);

// NonFiniteError naming the first parameter that is not finite after `step` steps.
void require_finite_parameters(Model& model, std::int64_t step);

// The same for all that a checkpoint holds: parameters, the states of modules and those of the optimizer. A
// second moment that is infinite would keep its weight where it is, without any other sign.
void require_finite_state(Model& model, Optimizer& optimizer, std::int64_t step);

}  // namespace moelab

// Finding where a value stopped being finite.
#pragma once

#include "core/context.hpp"
#include "core/optim.hpp"
#include "experiments/data/dataset.hpp"
#include "experiments/models/model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

// model.forward(). A NonFiniteError that comes out of it goes through name_non_finite().
ModelOutput checked_forward(Model& model, const Batch& batch, const ForwardContext& context);

// Repeats the forward pass with an observer and throws a NonFiniteError that names the step and what is not
// finite first: a parameter, the data, the output of a sub-layer; what the pass itself throws where these are
// finite, or `otherwise`. Without context.training the step is that after which the evaluation stands.
[[noreturn]] void name_non_finite(Model& model, const Batch& batch, const ForwardContext& context,
                                  const std::string& otherwise);

// Whether what modules keep besides parameters is finite.
bool states_are_finite(const std::vector<NamedState>& states);

// NonFiniteError naming the first thing that is not finite after `step` steps, of all that a checkpoint
// holds: parameters, the states of modules and those of the optimizer. A second moment that is infinite would
// keep its weight where it is, without any other sign.
void require_finite_state(Model& model, Optimizer& optimizer, std::int64_t step);

}  // namespace moelab

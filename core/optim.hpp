// Optimizers over the flat buffers of a ParameterStore, and clipping of gradients.
#pragma once

#include "core/module.hpp"

#include <functional>
#include <memory>
#include <string>

namespace moelab {

// One update of every trainable parameter from its gradient. Decay reaches only parameters with decayed(). A
// parameter with trainable = false keeps its value. Every update marks the parameters as changed.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Takes one step with this learning rate. Whether all that it wrote, weights and state, is finite; known
  // from the update itself, without another pass over memory.
  virtual bool step(double lr) = 0;
  // Steps taken so far; part of a checkpoint, as Adam's bias correction depends on it.
  virtual std::int64_t num_steps() const = 0;
  virtual void set_num_steps(std::int64_t steps) = 0;
  // The state for checkpoints, in the order of the store: calls f("m.<path>", matrix of the parameter's
  // shape). What is written into the matrix is the state from then on.
  virtual void visit_state(const std::function<void(const std::string& name, MatrixView state)>& f) = 0;
};

// Adam with decoupled weight decay (Loshchilov and Hutter 2019), in torch's order: the weight is decayed by
// lr * weight_decay first, and eps stands outside of the root. States "m." and "v.".
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
};
// The store must outlive the optimizer.
std::unique_ptr<Optimizer> make_adamw(ParameterStore& store, const AdamWOptions& options);

// v = momentum v + g + weight_decay w; w -= lr v. State "velocity." where there is momentum.
struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
};
std::unique_ptr<Optimizer> make_sgd(ParameterStore& store, const SgdOptions& options);

// Global 2-norm of the gradients of all trainable parameters, summed in a fixed order. NonFiniteError that
// names the last parameter whose gradient holds an infinity or NaN, which is the first that backward reached.
double grad_norm(ParameterStore& store);

// Scales all gradients by min(1, max_norm / (norm + 1e-6)), as torch's clip_grad_norm_. Returns the norm
// before. Errors as grad_norm(); nothing is changed then.
double clip_grad_norm(ParameterStore& store, double max_norm);

}  // namespace moelab

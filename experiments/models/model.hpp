// A model as the trainer sees it: a batch in, a loss out.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/module.hpp"
#include "experiments/data/dataset.hpp"
#include "moe/ffn_block.hpp"

#include <memory>
#include <vector>

namespace moelab {

struct ModelOutput {
  Variable loss;  // (1, 1) mean task loss per counted target; 0 where nothing counts
  std::vector<double>
      target_losses;      // (N) task loss of each row (nats a token, or squared error); NaN: not counted
  Index num_counted = 0;  // targets that count
  std::vector<moe::FfnOutput> ffn;         // one an FFN layer, in order; their y is released
  std::vector<std::uint8_t> correct = {};  // (B) classification: 1 where the best class is the target
  bool targets_are_inputs = false;         // the target of a row is its own token (masked), not the next
};

class Model : public Module {
 public:
  virtual ModelOutput forward(const Batch& batch, const ForwardContext& context) = 0;
  // The FFN of each layer, in order.
  virtual std::vector<moe::FfnBlock*> ffn_blocks() = 0;
};

}  // namespace moelab

// A stack of FFNs on features, for regression:
//
//   in (num_features -> d_model) -> layers.0.ffn ... layers.L.ffn -> out (d_model -> num_targets)
//
// with x + FFN(x) in place of FFN(x) where `residual` is set. `in` and `out` are linear maps with bias that
// are there unless features and targets both have width d_model.
#pragma once

#include "core/layers/linear.hpp"
#include "experiments/config/model_config.hpp"
#include "experiments/models/model.hpp"

#include <optional>
#include <vector>

namespace moelab {

class FfnModel : public Model {
 public:
  FfnModel(const ModelConfig& config, Index num_features, Index num_targets);
  // The loss is the squared error, averaged over targets and real rows.
  ModelOutput forward(const Batch& batch, const ForwardContext& context) override;
  std::vector<moe::FfnBlock*> ffn_blocks() override;
  void visit(Visitor& visitor) override;

 private:
  class Projection : public Module {
   public:
    Projection(Index in, Index out);
    Variable forward(const Variable& x, const ForwardContext& context) { return map_.forward(x, context); }
    void visit(Visitor& visitor) override { map_.visit(visitor, "w", "b"); }

   private:
    Linear map_;
  };

  bool residual_;
  std::optional<Projection> in_, out_;
  std::vector<std::unique_ptr<moe::FfnBlock>> ffns_;
};

}  // namespace moelab

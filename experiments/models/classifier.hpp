// A bidirectional encoder that classifies sequences of feature rows: images cut into patches (ViT,
// Dosovitskiy et al. 2021, with the mean over the patches in place of a class token).
//
//   patch (num_features -> d_model) -> stack -> mean over the real rows -> head (d_model -> num_classes)
#pragma once

#include "core/layers/linear.hpp"
#include "experiments/models/model.hpp"
#include "experiments/models/stack.hpp"

#include <vector>

namespace moelab {

class Classifier : public Model {
 public:
  Classifier(const ModelConfig& config, Index num_features, Index num_classes, Index seq_len);
  // One target a sequence. The loss is the mean cross-entropy (nats) over the sequences; `correct` is given.
  // Error where a sequence is padding only.
  ModelOutput forward(const Batch& batch, const ForwardContext& context) override;
  std::vector<moe::FfnBlock*> ffn_blocks() override { return stack_.ffn_blocks(); }
  void visit(Visitor& visitor) override;

 private:
  class Patch : public Module {
   public:
    Patch(Index num_features, Index d_model);
    void visit(Visitor& visitor) override { map.visit(visitor, "w", "b"); }
    Linear map;
  };
  // Runs once a sequence, not once a token.
  class ClassHead : public Module {
   public:
    ClassHead(Index d_model, Index num_classes);
    void visit(Visitor& visitor) override;
    Parameter weight, bias;
  };

  Patch patch_;
  Stack stack_;
  ClassHead head_;
};

}  // namespace moelab

// The FFN as a kernel expert: the dense block, routed experts and shared experts all run this code.
#pragma once

#include "core/ops/activation.hpp"
#include "core/random.hpp"
#include "moe/expert.hpp"
#include "moe/experts/ffn_options.hpp"

#include <optional>
#include <string>

namespace moelab::moe {

// Parameters w1 (d_ff, d_model), w2 (d_model, d_ff), gated also w3 (d_ff, d_model), the factor that is not
// activated; b1, b3 (1, d_ff) and b2 (1, d_model) with `bias`.
//
// What is kept for the backward pass is the pre-activation, (n, d_ff) or gate and up side by side (n, 2
// d_ff); the activation is computed again. A dropout mask is drawn again from its stream.
class FfnExpert final : public Expert, private ExpertKernel {
 public:
  FfnExpert(const FfnExpertOptions& options, const ExpertShape& shape);

  void visit(Visitor& visitor) override;
  const ExpertKernel* kernel() const override { return this; }

 private:
  Index saved_cols() const override { return gated_ ? 2 * d_ff_ : d_ff_; }
  Index scratch_cols() const override;
  void forward(In x, Out y, Out saved, const ExpertRows& rows) const override;
  void backward_rows(In dy, Out saved, Out scratch, Out dx, const ExpertRows& rows) const override;
  Index num_gradient_pieces() const override;
  void add_parameter_gradients(Index piece, In x, In dy, In saved, In scratch,
                               const ExpertRows& rows) const override;

  void pre_activation(In x, Out pre, gemm::Precision precision) const;
  void activate(In pre, Out hidden) const;
  // Turns the pre-activation into its gradient.
  void activate_backward(Out pre, In dhidden) const;
  // Multiplies with 0 or 1 / (1 - p), in training, where the dropout is at that position.
  void drop(Out values, bool at_output, const ExpertRows& rows) const;
  bool drops(bool at_output, const ExpertRows& rows) const;

  ops::Activation activation_;
  bool gated_;
  Index d_model_, d_ff_;
  double dropout_;
  bool dropout_at_output_;
  std::string stream_name_;
  Parameter w1_, w2_;
  std::optional<Parameter> w3_, b1_, b2_, b3_;
};

}  // namespace moelab::moe

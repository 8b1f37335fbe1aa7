// The FFN over blocks of rows: gather and convert, one product with gate and up side by side, activation,
// down product. Everything between the gather and the store stays in cache.
//
// What is kept for the backward pass is the pre-activation; the activation is computed again, and so is the
// mask of dropout. The gradient of a weight is a sum over chunks of rows in order, cut into stripes of the
// weight's rows.
#pragma once

#include "core/ops/dropout.hpp"
#include "moe/expert.hpp"
#include "moe/experts/ffn.hpp"
#include "moe/operand_rows.hpp"

#include <optional>
#include <vector>

namespace moelab::moe {

class FfnPass final : public ExpertPass {
 public:
  FfnPass(const FfnParts& ffn, const ExpertRows& rows);

  Index block_rows() const override;
  Index num_preparations() const override { return 2; }
  void prepare_forward(Index piece) override { prepare(piece, gemm::Use::forward); }
  void prepare_backward(Index piece) override;
  void forward(Index first, Out y) override;
  void backward(Index first, In dy, Out dx) override;
  Index num_gradient_pieces() const override;
  void add_parameter_gradients(Index piece) override;

 private:
  // Makes the weights of the inner product (piece 0) or of the down product (1) ready, if they changed.
  void prepare(Index piece, gemm::Use use) const;
  void multiply(const gemm::Operand& x, const gemm::PackedWeight& w, Out y, Index count) const;
  void multiply_backward(const gemm::Operand& dy, const gemm::PackedWeight& w, Out dx, Index count) const;
  gemm::Precision precision() const { return rows_.context.precision; }
  // The dropout of this pass at that position, if there is one.
  std::optional<ops::DropoutMask> mask(bool at_output) const;
  // factor (cols) of one row.
  void mask_row(const ops::DropoutMask& mask, Index row, Index cols, Scalar* factors) const;
  void gather(Index first, Index count, OperandRows& to, Index to_first) const;
  // Before a product writes y. In bfloat16 the product is done sooner than its lines have come; in float32 it
  // is not, and asking for them costs more than it gains.
  void prefetch_result(Out y) const;
  void add_inner_bias(Out pre) const;
  // One row of hidden values from its pre-activation.
  void activate(const Scalar* pre, Scalar* hidden) const;
  // Turns a row of pre-activations into its gradient, and gives the hidden values again.
  void activate_backward(Scalar* pre, const Scalar* dhidden, Scalar* hidden) const;
  void add_weight_gradient(const Parameter& w, bool sets, Index stripe, const OperandRows* doutput,
                           Index first_col, const OperandRows& input) const;
  gemm::Operand dpre_operand(Index first, Index count) const;

  const FfnParts& ffn_;
  ExpertRows rows_;
  Index padded_;  // rows, the last block padded to a height that products have programs for
  bool packs_weights_;
  Matrix pre_;            // (padded, inner_cols) pre-activation, when recording; then its gradient
  OperandRows x_;         // (padded, d_model) for the backward pass, as the following
  OperandRows dy_;        // (padded, d_model)
  OperandRows hidden_;    // (padded, d_ff)
  OperandRows dpre_;      // (padded, inner_cols) in bfloat16; in Scalar pre_ is used
  Matrix dy_block_sums_;  // (blocks, d_model) for the gradient of b2
  // Whether the gradient of a weight is the first after it was cleared, so that it is set instead of added.
  bool sets_w1_ = false, sets_w2_ = false, sets_w3_ = false;
};

}  // namespace moelab::moe

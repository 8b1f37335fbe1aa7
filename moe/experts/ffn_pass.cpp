#include "moe/experts/ffn_pass.hpp"

#include "core/prefetch.hpp"

#include <algorithm>
#include <tuple>

namespace moelab::moe {

namespace {

constexpr Index kBlockRows = 128;
constexpr Index kChunkRows = 512;  // rows that one product adds to the gradient of a weight
constexpr Index kFewRows = 256;    // up to so many rows weights are used as they lie
constexpr Index kRowsAhead = 4;    // rows that are gathered later but asked for now
constexpr Index kStripe = 256;     // rows of a weight whose gradient is one piece of work

Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

// Full blocks, and a last one of a height that products have programs for.
Index padded_count(Index rows) {
  const Index rest = rows % kBlockRows;
  return rows - rest + (rest > 0 ? gemm::serial::padded_rows(rest) : 0);
}

// Runs product(out) with out of `padded` rows, of which y takes the first.
template <class Product>
void store(Out y, Index padded, const Product& product) {
  if (padded == y.rows()) {
    product(y);
    return;
  }
  Matrix local(padded, y.cols());
  product(local);
  y = local.topRows(y.rows());
}

}  // namespace

FfnPass::FfnPass(const FfnParts& ffn, const ExpertRows& rows)
    : ffn_(ffn), rows_(rows), padded_(padded_count(rows.count())), packs_weights_(rows.count() > kFewRows) {
  if (rows.context.record) pre_.resize(padded_, ffn.inner_cols());
}

Index FfnPass::block_rows() const { return kBlockRows; }

void FfnPass::forward(Index first, Out y) {
  const Index count = y.rows();
  const Index padded = padded_count(count);
  OperandRows x(padded, ffn_.d_model, precision());
  gather(first, count, x, 0);

  Matrix local(rows_.context.record ? 0 : padded, ffn_.inner_cols());
  Out pre = rows_.context.record ? Out(pre_.middleRows(first, padded)) : Out(local);
  prefetch_result(pre);
  multiply(x.operand(0, padded), ffn_.packed_in, pre, count);
  add_inner_bias(pre);

  OperandRows hidden(padded, ffn_.d_ff, precision());
  hidden.set_rows_zero(count, padded - count);
  Matrix row(2, ffn_.d_ff);  // hidden values, and factors of dropout
  const auto inner_mask = mask(false);
  for (Index r = 0; r < count; ++r) {
    activate(pre.row(r).data(), row.row(0).data());
    if (inner_mask) {
      mask_row(*inner_mask, first + r, ffn_.d_ff, row.row(1).data());
      row.row(0).array() *= row.row(1).array();
    }
    hidden.set_row(r, row.row(0).data());
  }

  store(y, padded, [&](Out out) {
    prefetch_result(out);
    multiply(hidden.operand(0, padded), ffn_.w2.packed(), out, count);
  });
  if (ffn_.b2) y.rowwise() += ffn_.b2->value().row(0);
  if (const auto output_mask = mask(true)) {
    Matrix factors(1, ffn_.d_model);
    for (Index r = 0; r < count; ++r) {
      mask_row(*output_mask, first + r, ffn_.d_model, factors.data());
      y.row(r).array() *= factors.row(0).array();
    }
  }
}

void FfnPass::prepare(Index piece, gemm::Use use) const {
  const gemm::PackedWeight& weight = piece == 0 ? ffn_.packed_in : ffn_.w2.packed();
  if (packs_weights_) {
    weight.form(use, precision());
  } else if (gemm::uses_bfloat16(precision())) {
    weight.plain_bfloat16();
  }
}

void FfnPass::multiply(const gemm::Operand& x, const gemm::PackedWeight& w, Out y, Index count) const {
  if (packs_weights_) {
    gemm::serial::forward(x, w, y, false, count);
  } else {
    gemm::serial::forward_plain(x, w, y, count);
  }
}

void FfnPass::multiply_backward(const gemm::Operand& dy, const gemm::PackedWeight& w, Out dx,
                                Index count) const {
  if (packs_weights_) {
    gemm::serial::backward_input(dy, w, dx, false, count);
  } else {
    gemm::serial::backward_input_plain(dy, w, dx, count);
  }
}

void FfnPass::prepare_backward(Index piece) {
  prepare(piece, gemm::Use::backward_input);
  // Several pieces of work add to one bias: its zeros are written before they start.
  const auto clear_bias = [](const std::optional<Parameter>& b) {
    if (b) std::ignore = b->grad();
  };
  const auto is_first = [](const Parameter& w) { return w.trainable && w.take_cleared_grad(); };
  if (piece > 0) {
    sets_w2_ = is_first(ffn_.w2);
    clear_bias(ffn_.b2);
    return;
  }
  sets_w1_ = is_first(ffn_.w1);
  sets_w3_ = ffn_.w3 && is_first(*ffn_.w3);
  clear_bias(ffn_.b1);
  clear_bias(ffn_.b3);
  x_ = OperandRows(padded_, ffn_.d_model, precision());
  dy_ = OperandRows(padded_, ffn_.d_model, precision());
  hidden_ = OperandRows(padded_, ffn_.d_ff, precision());
  if (gemm::uses_bfloat16(precision())) dpre_ = OperandRows(padded_, ffn_.inner_cols(), precision());
  if (ffn_.b2) dy_block_sums_.setZero(ceil_div(rows_.count(), kBlockRows), ffn_.d_model);
}

void FfnPass::backward(Index first, In dy, Out dx) {
  const Index count = dy.rows();
  const Index padded = padded_count(count);
  const bool bfloat16 = gemm::uses_bfloat16(precision());
  gather(first, count, x_, first);

  Matrix row(2, std::max(ffn_.d_model, ffn_.d_ff));  // values, and factors of dropout
  const auto output_mask = mask(true);
  for (Index r = 0; r < count; ++r) {
    const Scalar* dy_row = dy.row(r).data();
    if (output_mask) {
      mask_row(*output_mask, first + r, ffn_.d_model, row.row(1).data());
      row.row(0).head(ffn_.d_model).array() = dy.row(r).array() * row.row(1).head(ffn_.d_model).array();
      dy_row = row.row(0).data();
    }
    dy_.set_row(first + r, dy_row);
    if (ffn_.b2) dy_block_sums_.row(first / kBlockRows) += ConstMatrixView(dy_row, 1, ffn_.d_model);
  }
  dy_.set_rows_zero(first + count, padded - count);

  Matrix dhidden(padded, ffn_.d_ff);
  multiply_backward(dy_.operand(first, padded), ffn_.w2.packed(), dhidden, count);
  const auto inner_mask = mask(false);
  for (Index r = 0; r < count; ++r) {
    Scalar* pre = pre_.row(first + r).data();
    const auto factors = row.row(1).head(ffn_.d_ff).array();
    if (inner_mask) {
      mask_row(*inner_mask, first + r, ffn_.d_ff, row.row(1).data());
      dhidden.row(r).array() *= factors;
    }
    activate_backward(pre, dhidden.row(r).data(), row.row(0).data());
    if (inner_mask) row.row(0).head(ffn_.d_ff).array() *= factors;
    hidden_.set_row(first + r, row.row(0).data());
    if (bfloat16) dpre_.set_row(first + r, pre);
  }
  hidden_.set_rows_zero(first + count, padded - count);
  pre_.middleRows(first + count, padded - count).setZero();
  if (bfloat16) dpre_.set_rows_zero(first + count, padded - count);

  store(dx, padded,
        [&](Out out) { multiply_backward(dpre_operand(first, padded), ffn_.packed_in, out, count); });
}

Index FfnPass::num_gradient_pieces() const {
  return ceil_div(ffn_.d_ff, kStripe) * (ffn_.gated ? 2 : 1) + ceil_div(ffn_.d_model, kStripe);
}

void FfnPass::add_parameter_gradients(Index piece) {
  const Index inner = ceil_div(ffn_.d_ff, kStripe);
  // The sum of the rows, one after another, into a stripe of a bias.
  const auto add_bias = [](const std::optional<Parameter>& b, const auto& rows, Index n, Index first,
                           Index count, Index first_col) {
    if (!b) return;
    auto sum = b->grad().row(0).segment(first, count);
    for (Index r = 0; r < n; ++r) sum += rows.row(r).segment(first_col + first, count);
  };
  const auto stripe_rows = [](Index rows, Index stripe) {
    return std::min(kStripe, rows - stripe * kStripe);
  };

  if (piece < inner) {
    add_weight_gradient(ffn_.w1, sets_w1_, piece, nullptr, 0, x_);
    add_bias(ffn_.b1, pre_, rows_.count(), piece * kStripe, stripe_rows(ffn_.d_ff, piece), 0);
  } else if (ffn_.gated && piece < 2 * inner) {
    const Index stripe = piece - inner;
    add_weight_gradient(*ffn_.w3, sets_w3_, stripe, nullptr, ffn_.d_ff, x_);
    add_bias(ffn_.b3, pre_, rows_.count(), stripe * kStripe, stripe_rows(ffn_.d_ff, stripe), ffn_.d_ff);
  } else {
    const Index stripe = piece - inner * (ffn_.gated ? 2 : 1);
    add_weight_gradient(ffn_.w2, sets_w2_, stripe, &dy_, 0, hidden_);
    add_bias(ffn_.b2, dy_block_sums_, dy_block_sums_.rows(), stripe * kStripe,
             stripe_rows(ffn_.d_model, stripe), 0);
  }
}

// dw = d(output)^T input for one stripe, set or added; `doutput` null: the gradient of the pre-activation.
void FfnPass::add_weight_gradient(const Parameter& w, bool sets, Index stripe, const OperandRows* doutput,
                                  Index first_col, const OperandRows& input) const {
  if (!w.trainable) return;
  const Index first = stripe * kStripe;
  const Index count = std::min(kStripe, w.rows() - first);
  for (Index r = 0; r < padded_; r += kChunkRows) {
    const Index chunk = std::min(kChunkRows, padded_ - r);
    const gemm::Operand d = doutput != nullptr ? doutput->operand(r, chunk) : dpre_operand(r, chunk);
    if (r == 0) prefetch_result(w.grad().middleRows(first, count));
    gemm::serial::backward_weight(d.middle_cols(first_col + first, count), input.operand(r, chunk),
                                  w.grad().middleRows(first, count), !sets || r > 0,
                                  std::min(chunk, rows_.count() - r));
  }
}

gemm::Operand FfnPass::dpre_operand(Index first, Index count) const {
  if (gemm::uses_bfloat16(precision())) return dpre_.operand(first, count);
  return {pre_.row(first).data(), count, pre_.cols(), pre_.cols()};
}

std::optional<ops::DropoutMask> FfnPass::mask(bool at_output) const {
  if (ffn_.dropout == 0 || !rows_.context.training || ffn_.dropout_at_output != at_output)
    return std::nullopt;
  return ops::DropoutMask(ffn_.dropout, rows_.context.stream(ffn_.stream_name));
}

void FfnPass::mask_row(const ops::DropoutMask& mask, Index row, Index cols, Scalar* factors) const {
  const auto first = static_cast<std::uint64_t>(rows_.tokens[static_cast<std::size_t>(row)] * cols);
  mask.factors(first, cols, factors);
}

void FfnPass::gather(Index first, Index count, OperandRows& to, Index to_first) const {
  for (Index r = 0; r < count; ++r) {
    if (r + kRowsAhead < count) {
      rows_.operands.prefetch_row(rows_.tokens[static_cast<std::size_t>(first + r + kRowsAhead)]);
    }
    to.copy_row(to_first + r, rows_.operands, rows_.tokens[static_cast<std::size_t>(first + r)]);
  }
  to.set_rows_zero(to_first + count, padded_count(count) - count);
}

void FfnPass::prefetch_result(Out y) const {
  if (!gemm::uses_bfloat16(precision())) return;
  for (Index r = 0; r < y.rows(); ++r)
    prefetch_to_write(y.row(r).data(), static_cast<std::size_t>(y.cols()) * sizeof(Scalar));
}

void FfnPass::add_inner_bias(Out pre) const {
  if (ffn_.b1) pre.leftCols(ffn_.d_ff).rowwise() += ffn_.b1->value().row(0);
  if (ffn_.b3) pre.rightCols(ffn_.d_ff).rowwise() += ffn_.b3->value().row(0);
}

void FfnPass::activate(const Scalar* pre, Scalar* hidden) const {
  if (ffn_.gated) {
    ops::activate_gated(ffn_.activation, pre, pre + ffn_.d_ff, hidden, ffn_.d_ff);
  } else {
    ops::activate(ffn_.activation, pre, hidden, ffn_.d_ff);
  }
}

void FfnPass::activate_backward(Scalar* pre, const Scalar* dhidden, Scalar* hidden) const {
  if (ffn_.gated) {
    ops::activate_gated_backward(ffn_.activation, pre, pre + ffn_.d_ff, dhidden, pre, pre + ffn_.d_ff, hidden,
                                 ffn_.d_ff);
  } else {
    ops::activate_backward(ffn_.activation, pre, dhidden, pre, hidden, ffn_.d_ff);
  }
}

}  // namespace moelab::moe

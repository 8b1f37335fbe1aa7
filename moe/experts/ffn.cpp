#include "moe/experts/ffn.hpp"

#include "core/error.hpp"
#include "core/gemm.hpp"
#include "core/ops/dropout.hpp"

#include <algorithm>
#include <cmath>

namespace moelab::moe {

namespace {

constexpr double kInitStd = 0.02;
constexpr Index kStripe = 256;  // rows of a weight whose gradient is one piece of work

Index stripes(Index rows) { return (rows + kStripe - 1) / kStripe; }

void add_bias(Out y, const std::optional<Parameter>& bias) {
  if (bias) y.rowwise() += bias->value().row(0);
}

// bias gradient += sum of the rows, one after another.
void add_row_sum(In dy, Eigen::Ref<Eigen::Matrix<Scalar, 1, Eigen::Dynamic>> sum) {
  for (Index r = 0; r < dy.rows(); ++r) sum += dy.row(r);
}

}  // namespace

FfnExpert::FfnExpert(const FfnExpertOptions& options, const ExpertShape& shape)
    : activation_(ops::activation_from_name(options.activation)),
      gated_(ops::is_gated(activation_)),
      d_model_(shape.d_model),
      d_ff_(options.d_ff),
      dropout_(options.dropout),
      dropout_at_output_(options.dropout_position == "output"),
      stream_name_(fmt::format("dropout/layers.{}.ffn.{}", shape.layer, shape.expert)),
      w1_(d_ff_, d_model_, Init::normal(kInitStd)),
      w2_(d_model_, d_ff_, Init::normal(kInitStd / std::sqrt(2.0 * static_cast<double>(shape.num_layers)))) {
  if (gated_) w3_.emplace(d_ff_, d_model_, Init::normal(kInitStd));
  if (options.bias) {
    b1_.emplace(1, d_ff_, Init::constant(0));
    b2_.emplace(1, d_model_, Init::constant(0));
    if (gated_) b3_.emplace(1, d_ff_, Init::constant(0));
  }
}

void FfnExpert::visit(Visitor& visitor) {
  const auto matrix = [&](std::string_view name, Parameter& w) {
    visitor.parameter(name, w);
    visitor.product(name, {{}, w.rows(), w.cols()});
  };
  matrix("w1", w1_);
  if (b1_) visitor.parameter("b1", *b1_);
  if (w3_) matrix("w3", *w3_);
  if (b3_) visitor.parameter("b3", *b3_);
  matrix("w2", w2_);
  if (b2_) visitor.parameter("b2", *b2_);
}

Index FfnExpert::scratch_cols() const { return d_ff_ + (dropout_ > 0 && dropout_at_output_ ? d_model_ : 0); }

void FfnExpert::forward(In x, Out y, Out saved, const ExpertRows& rows) const {
  const gemm::Precision precision = rows.context.precision;
  Matrix local;
  if (saved.cols() == 0) local.resize(x.rows(), saved_cols());
  Out pre = saved.cols() == 0 ? Out(local) : saved;
  pre_activation(x, pre, precision);
  Matrix hidden(x.rows(), d_ff_);
  activate(pre, hidden);
  drop(hidden, false, rows);
  gemm::forward(hidden, w2_.value(), y, precision);
  add_bias(y, b2_);
  drop(y, true, rows);
}

void FfnExpert::backward_rows(In dy, Out saved, Out scratch, Out dx, const ExpertRows& rows) const {
  const gemm::Precision precision = rows.context.precision;
  Out hidden = scratch.leftCols(d_ff_);
  activate(saved, hidden);
  drop(hidden, false, rows);

  Matrix dhidden(dy.rows(), d_ff_);
  if (drops(true, rows)) {
    Out dropped = scratch.rightCols(d_model_);
    dropped = dy;
    drop(dropped, true, rows);
    gemm::backward_input(dropped, w2_.value(), dhidden, precision);
  } else {
    gemm::backward_input(dy, w2_.value(), dhidden, precision);
  }
  drop(dhidden, false, rows);
  activate_backward(saved, dhidden);
  gemm::backward_input(saved.leftCols(d_ff_), w1_.value(), dx, precision);
  if (gated_) gemm::backward_input(saved.rightCols(d_ff_), w3_->value(), dx, precision, true);
}

Index FfnExpert::num_gradient_pieces() const { return stripes(d_ff_) * (gated_ ? 2 : 1) + stripes(d_model_); }

void FfnExpert::add_parameter_gradients(Index piece, In x, In dy, In saved, In scratch,
                                        const ExpertRows& rows) const {
  // dw = d(output)^T input, for a stripe of the rows of dw.
  const auto add = [&](const Parameter& w, const std::optional<Parameter>& b, In doutput, In input,
                       Index stripe) {
    const Index first = stripe * kStripe;
    const Index count = std::min(kStripe, w.rows() - first);
    gemm::backward_weight(doutput.middleCols(first, count), input, w.grad().middleRows(first, count),
                          rows.context.precision, true);
    if (b) add_row_sum(doutput.middleCols(first, count), b->grad().row(0).segment(first, count));
  };
  const Index inner = stripes(d_ff_);
  if (piece < inner) {
    add(w1_, b1_, saved.leftCols(d_ff_), x, piece);
  } else if (gated_ && piece < 2 * inner) {
    add(*w3_, b3_, saved.rightCols(d_ff_), x, piece - inner);
  } else {
    const Index stripe = piece - inner * (gated_ ? 2 : 1);
    add(w2_, b2_, drops(true, rows) ? In(scratch.rightCols(d_model_)) : dy, scratch.leftCols(d_ff_), stripe);
  }
}

void FfnExpert::pre_activation(In x, Out pre, gemm::Precision precision) const {
  gemm::forward(x, w1_.value(), pre.leftCols(d_ff_), precision);
  add_bias(pre.leftCols(d_ff_), b1_);
  if (!gated_) return;
  gemm::forward(x, w3_->value(), pre.rightCols(d_ff_), precision);
  add_bias(pre.rightCols(d_ff_), b3_);
}

void FfnExpert::activate(In pre, Out hidden) const {
  for (Index r = 0; r < pre.rows(); ++r) {
    const Scalar* gate = pre.row(r).data();
    Scalar* h = hidden.row(r).data();
    if (gated_) {
      ops::activate_gated(activation_, gate, gate + d_ff_, h, d_ff_);
    } else {
      ops::activate(activation_, gate, h, d_ff_);
    }
  }
}

void FfnExpert::activate_backward(Out pre, In dhidden) const {
  for (Index r = 0; r < pre.rows(); ++r) {
    Scalar* gate = pre.row(r).data();
    const Scalar* dh = dhidden.row(r).data();
    if (gated_) {
      ops::activate_gated_backward(activation_, gate, gate + d_ff_, dh, gate, gate + d_ff_, d_ff_);
    } else {
      ops::activate_backward(activation_, gate, dh, gate, d_ff_);
    }
  }
}

bool FfnExpert::drops(bool at_output, const ExpertRows& rows) const {
  return dropout_ > 0 && rows.context.training && dropout_at_output_ == at_output;
}

void FfnExpert::drop(Out values, bool at_output, const ExpertRows& rows) const {
  if (!drops(at_output, rows)) return;
  const ops::DropoutMask mask(dropout_, rows.context.stream(stream_name_));
  for (Index r = 0; r < values.rows(); ++r) {
    const auto first = static_cast<std::uint64_t>(rows.tokens[static_cast<std::size_t>(r)] * values.cols());
    for (Index c = 0; c < values.cols(); ++c) values(r, c) *= mask.factor(first + static_cast<std::uint64_t>(c));
  }
}

}  // namespace moelab::moe

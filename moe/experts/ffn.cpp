#include "moe/experts/ffn.hpp"

#include "core/error.hpp"
#include "core/layers/linear.hpp"
#include "moe/experts/ffn_pass.hpp"

namespace moelab::moe {

namespace {

std::optional<Parameter> optional_parameter(bool present, Index rows, Index cols, const Init& init) {
  if (!present) return std::nullopt;
  return Parameter(rows, cols, init);
}

std::vector<const Parameter*> stacked(const Parameter& w1, const std::optional<Parameter>& w3) {
  if (w3) return {&w1, &*w3};
  return {&w1};
}

}  // namespace

FfnParts::FfnParts(const FfnExpertOptions& options, const ExpertShape& shape)
    : activation(ops::activation_from_name(options.activation)),
      gated(ops::is_gated(activation)),
      d_model(shape.d_model),
      d_ff(options.d_ff),
      dropout(options.dropout),
      dropout_at_output(options.dropout_position == "output"),
      stream_name(fmt::format("dropout/layers.{}.ffn.{}", shape.layer, shape.expert)),
      w1(d_ff, d_model, Init::normal(kInitialStd)),
      w2(d_model, d_ff, Init::normal(residual_std(shape.num_layers))),
      w3(optional_parameter(gated, d_ff, d_model, Init::normal(kInitialStd))),
      b1(optional_parameter(options.bias, 1, d_ff, Init::constant(0))),
      b2(optional_parameter(options.bias, 1, d_model, Init::constant(0))),
      b3(optional_parameter(options.bias && gated, 1, d_ff, Init::constant(0))),
      packed_in(stacked(w1, w3)) {}

void FfnExpert::visit(Visitor& visitor) {
  const auto matrix = [&](std::string_view name, Parameter& w) {
    visitor.parameter(name, w);
    visitor.product(name, {{}, w.rows(), w.cols()});
  };
  matrix("w1", parts_.w1);
  if (parts_.b1) visitor.parameter("b1", *parts_.b1);
  if (parts_.w3) matrix("w3", *parts_.w3);
  if (parts_.b3) visitor.parameter("b3", *parts_.b3);
  matrix("w2", parts_.w2);
  if (parts_.b2) visitor.parameter("b2", *parts_.b2);
}

std::unique_ptr<ExpertPass> FfnExpert::begin(const ExpertRows& rows) {
  return std::make_unique<FfnPass>(parts_, rows);
}

}  // namespace moelab::moe

#include "moe/routers/projection.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/normalise.hpp"
#include "moe/routers/selection.hpp"

#include <algorithm>

namespace moelab::moe {

namespace {

constexpr Index kCosineWidth = 256;
constexpr double kTauStart = 1 / 0.07;
constexpr double kTauMax = 100;

Variable affine(const Variable& x, Parameter& weight, std::optional<Parameter>& bias, bool record) {
  Variable y = ops::matmul_transposed(x, Variable(weight, record));
  return bias ? ops::add(y, Variable(*bias, record)) : y;
}

}  // namespace

void ProjectionOptions::fields(FieldVisitor& v) {
  v("projection", projection,
    {.help = "How logits are made from hidden rows", .choices = {"linear", "cosine", "mlp"}});
  v("init_std", init_std, {.help = "Standard deviation of the initial router weights", .min = 0});
  v("bias", bias, {.help = "Bias on every linear map of the router"});
  v("jitter", jitter,
    {.help = "The router's input is multiplied by numbers from U[1 - j, 1 + j], in training only",
     .min = 0,
     .max = 1,
     .max_exclusive = true});
  v("temperature", temperature,
    {.help = "Logits are divided by this before scores, choice and losses",
     .min = 0,
     .max = 1e30,  // its inverse is a number of float32, too
     .min_exclusive = true});
  v.check(!(bias && projection == "cosine"), "bias", "the cosine projection has no bias");
}

Projection::Projection(const ProjectionOptions& options, const RouterShape& shape, bool trainable)
    : options_(options), shape_(shape) {
  const Init normal = Init::normal(options.init_std);
  const Index d = shape.d_model;
  const Index num_experts = shape.num_experts;
  const auto make = [&](std::optional<Parameter>& p, Index rows, Index cols, const Init& init) {
    p.emplace(rows, cols, init);
    p->trainable = trainable;
  };
  if (options.projection == "cosine") {
    const Index width = std::min(kCosineWidth, d);
    make(proj_, width, d, normal);
    make(embed_, num_experts, width, normal);
    make(tau_, 1, 1, Init::constant(kTauStart));
  } else if (options.projection == "mlp") {
    make(w1_, d, d, normal);
    make(w2_, num_experts, d, normal);
    if (options.bias) {
      make(b1_, 1, d, Init::constant(0));
      make(b2_, 1, num_experts, Init::constant(0));
    }
  } else {
    make(weight_, num_experts, d, normal);
    if (options.bias) make(bias_, 1, num_experts, Init::constant(0));
  }
}

Variable Projection::input(const Variable& x, const ForwardContext& context) const {
  if (options_.jitter == 0 || !context.training) return x;
  const random::Stream stream = context.stream("jitter/" + router_path(shape_.layer));
  Matrix factor(x.rows(), x.cols());
  for (Index i = 0; i < factor.size(); ++i) {
    const double u = stream.uniform(static_cast<std::uint64_t>(i));
    factor.data()[i] = static_cast<Scalar>(1 + options_.jitter * (2 * u - 1));
  }
  return ops::multiply(x, Variable(std::move(factor)));
}

Variable Projection::logits(const Variable& input, const ForwardContext& context) {
  const bool record = context.record;
  if (options_.projection == "cosine") {
    const Variable hidden = ops::row_normalise(ops::matmul_transposed(input, Variable(*proj_, record)));
    const Variable cosine = ops::matmul_transposed(hidden, ops::row_normalise(Variable(*embed_, record)));
    return ops::multiply(cosine, ops::clamp(Variable(*tau_, record), 0, kTauMax));
  }
  if (options_.projection == "mlp")
    return affine(ops::tanh(affine(input, *w1_, b1_, record)), *w2_, b2_, record);
  return affine(input, *weight_, bias_, record);
}

Variable Projection::finish(const Variable& clean, const Variable& noise, const RouterProbe& probe) const {
  Variable z = noise.defined() ? ops::add(clean, noise) : clean;
  if (options_.temperature != 1) z = ops::scale(z, 1 / options_.temperature);
  return probe.logits_offset.defined() ? ops::add(z, probe.logits_offset) : z;
}

void Projection::visit(Visitor& visitor) {
  const auto matrix = [&](std::string_view name, std::optional<Parameter>& p) {
    if (!p) return;
    visitor.parameter(name, *p);
    visitor.product(name, {{}, p->rows(), p->cols()});
  };
  const auto vector = [&](std::string_view name, std::optional<Parameter>& p) {
    if (p) visitor.parameter(name, *p);
  };
  matrix("weight", weight_);
  vector("bias", bias_);
  matrix("proj", proj_);
  matrix("embed", embed_);
  vector("tau", tau_);
  matrix("w1", w1_);
  vector("b1", b1_);
  matrix("w2", w2_);
  vector("b2", b2_);
}

}  // namespace moelab::moe

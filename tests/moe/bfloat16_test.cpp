// A mixture in bfloat16, as the product runs it, against the same formulas in float64: within what rounding
// the operands of each product to 8 bits can do. Where the machine has no bfloat16 products, float32 ones run
// instead, and the bits are those of float32.
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "core/random.hpp"
#include "moe/routing_plan.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/kind_examples.hpp"

#include <cmath>
#include <map>
#include <string>
#include <vector>

using namespace moelab;
using namespace moelab::moe;

namespace {

using Wide = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Index kTokens = 300, kWidth = 64, kExperts = 4, kInner = 96;
constexpr double kRounding =
    1.0 / 256;  // rounding to nearest moves a number by at most half of 2^-8 of itself

const char* const kLayer =
    "kind: moe\nexperts: {kind: ffn, count: 4, activation: swiglu, d_ff: 96}\n"
    "router: {kind: top_k, top_k: 2, scale: 1.5}\nlosses: {load_balance: 0.01, z: 0.001}\n";

Matrix random_rows(Index rows, Index cols, const char* name) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(11, name), 1);
  return m;
}

struct Outcome {
  Matrix y, dx;
  RoutingRecord routing;
  std::vector<double> losses;
  std::map<std::string, Matrix> weights, gradients;
};

Outcome run(gemm::Precision precision, const std::string& layer = kLayer) {
  const test::Ffn ffn(layer, kWidth);
  for (const NamedParameter& p : ffn.store->parameters()) {
    random::fill_normal(p.parameter->value(), random::Stream(5, p.path), 0.15);
    p.parameter->mark_changed();
  }
  ForwardContext context = test::training_context();
  context.precision = precision;
  const Variable x(random_rows(kTokens, kWidth, "x"), true);
  const FfnOutput output = ffn.forward(x, context);
  Outcome outcome{output.y.value(), {}, *output.routing, {}, {}, {}};
  for (const AuxiliaryLoss& loss : output.losses) outcome.losses.push_back(loss.value.item());
  backward(output.y, random_rows(kTokens, kWidth, "dy"));
  outcome.dx = x.grad();
  for (const NamedParameter& p : ffn.store->parameters()) {
    outcome.weights[p.path] = p.parameter->value();
    outcome.gradients[p.path] = p.parameter->grad();
  }
  return outcome;
}

double silu(double z) { return z / (1 + std::exp(-z)); }
double silu_slope(double z) {
  const double s = 1 / (1 + std::exp(-z));
  return s * (1 + z * (1 - s));
}

// Output and gradients in float64, for the choices of a run; the gradient of the router is left out. `error`:
// a bound on what bfloat16 operands do to y, entry by entry, to first order with a tenth on top.
struct Reference {
  Wide y = Wide::Zero(kTokens, kWidth), error = Wide::Zero(kTokens, kWidth);
  std::map<std::string, Wide> gradients;

  explicit Reference(const Outcome& run) {
    const Wide x = random_rows(kTokens, kWidth, "x").cast<double>();
    const Wide dy = random_rows(kTokens, kWidth, "dy").cast<double>();
    for (Index e = 0; e < kExperts; ++e) {
      const std::string name = fmt::format("experts.{}.", e);
      const Wide w1 = run.weights.at(name + "w1").cast<double>(),
                 w2 = run.weights.at(name + "w2").cast<double>(),
                 w3 = run.weights.at(name + "w3").cast<double>();
      Wide d1 = Wide::Zero(kInner, kWidth), d2 = Wide::Zero(kWidth, kInner), d3 = d1;
      for (Index t = 0; t < kTokens; ++t) {
        for (Index c = run.routing.choice_offsets[at(t)]; c < run.routing.choice_offsets[at(t + 1)]; ++c) {
          if (run.routing.expert_of[at(c)] == e)
            add(x.row(t), dy.row(t), run.routing.weight_of[at(c)], t, w1, w2, w3, d1, d2, d3);
        }
      }
      gradients[name + "w1"] = d1;
      gradients[name + "w2"] = d2;
      gradients[name + "w3"] = d3;
    }
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  void add(const Wide& x, const Wide& dy, double weight, Index t, const Wide& w1, const Wide& w2,
           const Wide& w3, Wide& d1, Wide& d2, Wide& d3) {
    const Wide gate = x * w1.transpose(), up = x * w3.transpose();
    const Wide gate_error = 2 * kRounding * x.cwiseAbs() * w1.cwiseAbs().transpose();
    const Wide up_error = 2 * kRounding * x.cwiseAbs() * w3.cwiseAbs().transpose();
    const Wide hidden = gate.unaryExpr(&silu).cwiseProduct(up);
    // The slope of silu is at most 1.1.
    const Wide hidden_error = 1.1 * gate_error.cwiseProduct(up.cwiseAbs()) +
                              gate.unaryExpr(&silu).cwiseAbs().cwiseProduct(up_error) +
                              1.1 * gate_error.cwiseProduct(up_error) + 2 * kRounding * hidden.cwiseAbs();
    y.row(t) += weight * hidden * w2.transpose();
    error.row(t) += 1.1 * weight * hidden_error * w2.cwiseAbs().transpose();
    const Wide dout = weight * dy;
    const Wide dhidden = dout * w2;
    d2 += dout.transpose() * hidden;
    d1 += dhidden.cwiseProduct(up).cwiseProduct(gate.unaryExpr(&silu_slope)).transpose() * x;
    d3 += dhidden.cwiseProduct(gate.unaryExpr(&silu)).transpose() * x;
  }
};

double relative(const Wide& a, const Wide& b) { return (a - b).norm() / b.norm(); }

}  // namespace

TEST_CASE("a mixture in bfloat16 stays within the rounding of its operands, forward and backward",
          "[moe][bfloat16]") {
  const Outcome single = run(gemm::Precision::float32);
  const Outcome half = run(gemm::Precision::bfloat16);
  const Reference reference(single);

  // The reference is right: float32 agrees to its own precision.
  CHECK(relative(single.y.cast<double>(), reference.y) < 1e-6);
  for (const auto& [path, gradient] : reference.gradients) {
    INFO(path);
    CHECK(relative(single.gradients.at(path).cast<double>(), gradient) < 1e-5);
  }

  if (!gemm::bfloat16_is_native()) {
    CHECK(half.y == single.y);
    CHECK(half.dx == single.dx);
    CHECK(half.gradients == single.gradients);
    return;
  }
  const Wide difference = half.y.cast<double>() - reference.y;
  CHECK((difference.cwiseAbs().array() <= reference.error.array()).all());
  // Rounding errors of many terms add up like a random walk: far below the bound, far above those of float32.
  CHECK(relative(half.y.cast<double>(), reference.y) < 0.02);
  CHECK(relative(half.y.cast<double>(), reference.y) > 1e-4);
  CHECK(relative(half.dx.cast<double>(), single.dx.cast<double>()) < 0.02);
  for (const auto& [path, gradient] : reference.gradients) {
    INFO(path);
    CHECK(relative(half.gradients.at(path).cast<double>(), gradient) < 0.02);
    CHECK(relative(half.gradients.at(path).cast<double>(), gradient) > 1e-4);
  }
}

TEST_CASE("routing in bfloat16 is that of float32: choices, weights and losses have the same bits",
          "[moe][bfloat16]") {
  const Outcome single = run(gemm::Precision::float32);
  const Outcome half = run(gemm::Precision::bfloat16);
  CHECK(half.routing.expert_of == single.routing.expert_of);
  CHECK(half.routing.weight_of == single.routing.weight_of);
  CHECK(half.losses == single.losses);

  // Logits 1.000 and 1.002 are one number in bfloat16. Expert 1 has the larger.
  const test::Ffn ffn(
      "kind: moe\nexperts: {kind: ffn, count: 2, activation: relu, d_ff: 16}\nrouter: {kind: top_k, top_k: "
      "1, "
      "normalize: false}\n",
      16);
  ffn.weight("router.weight").setZero();
  ffn.weight("router.weight")(0, 0) = 1.000F;
  ffn.weight("router.weight")(1, 0) = 1.002F;
  ForwardContext context = test::training_context();
  context.precision = gemm::Precision::bfloat16;
  const FfnOutput output = ffn.forward(Variable(Matrix::Ones(5, 16)), context);
  CHECK(output.routing->expert_of == std::vector<std::int32_t>(5, 1));
}

namespace {

// All that a router returns and the gradients of its parameters, for a layer of this precision.
std::vector<Matrix> routed(const std::string& layer, gemm::Precision precision) {
  const test::Ffn ffn(layer, kWidth);
  for (const NamedParameter& p : ffn.store->parameters()) {
    random::fill_normal(p.parameter->value(), random::Stream(5, p.path), 0.15);
    p.parameter->mark_changed();
  }
  std::vector<std::int32_t> ids(kTokens);
  for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(t % 50);
  TokenBatch batch = test::batch_of(kTokens);
  batch.ids = ids;
  ForwardContext context = test::training_context();
  context.precision = precision;
  const Variable x(random_rows(kTokens, kWidth, "x"), true);
  const Routing r = ffn.moe().router().route({x, batch, context, {}});
  std::vector<Matrix> all;
  Matrix experts(r.choices.size(), 1);
  for (Index c = 0; c < experts.rows(); ++c) {
    experts(c, 0) = static_cast<Scalar>(r.choices.expert_of[static_cast<std::size_t>(c)]);
  }
  all.push_back(std::move(experts));
  Variable objective(Matrix::Zero(1, 1));
  for (const Variable& v :
       {r.logits, r.scores, r.clean_logits, r.noise_std, r.weights,
        r.mixing ? r.mixing->dispatch : Variable(), r.mixing ? r.mixing->combine : Variable()}) {
    if (!v.defined()) continue;
    all.emplace_back(v.value());
    if (v.requires_grad())
      objective =
          ops::add(objective, ops::sum(ops::multiply(v, Variable(random_rows(v.rows(), v.cols(), "dv")))));
  }
  backward(objective);
  all.emplace_back(x.grad());
  all.emplace_back(ffn.store->grads());
  return all;
}

}  // namespace

TEST_CASE("every router with every projection routes in float32, whatever the layer's precision",
          "[moe][bfloat16]") {
  for (const auto& [kind, layers] : test::router_examples()) {
    for (const std::string& layer : layers) {
      INFO(layer);
      const bool same = routed(layer, gemm::Precision::bfloat16) == routed(layer, gemm::Precision::float32);
      CHECK(same);  // thousands of numbers
    }
  }
}

TEST_CASE("shared experts and the dense FFN in bfloat16 are within its rounding", "[moe][bfloat16]") {
  for (const std::string layer :
       {"{kind: dense, activation: gelu, d_ff: 96, bias: true}",
        "kind: moe\nexperts: {kind: ffn, count: 3, activation: relu_squared, d_ff: 32, bias: true}\nrouter: "
        "{kind: "
        "top_k, top_k: 2}\nshared: {count: 1, activation: geglu, d_ff: 48, gate: sigmoid}\n"}) {
    INFO(layer);
    const test::Ffn ffn(layer, kWidth);
    for (const NamedParameter& p : ffn.store->parameters()) {
      random::fill_normal(p.parameter->value(), random::Stream(5, p.path), 0.15);
      p.parameter->mark_changed();
    }
    std::vector<Matrix> outputs, gradients;
    for (const gemm::Precision precision : {gemm::Precision::float32, gemm::Precision::bfloat16}) {
      ForwardContext context = test::training_context();
      context.precision = precision;
      ffn.store->zero_grads();
      const Variable x(random_rows(kTokens, kWidth, "x"), true);
      const FfnOutput output = ffn.forward(x, context);
      backward(output.y, random_rows(kTokens, kWidth, "dy"));
      outputs.emplace_back(output.y.value());
      gradients.emplace_back(ffn.store->grads());
    }
    if (gemm::bfloat16_is_native()) {
      CHECK(relative(outputs[1].cast<double>(), outputs[0].cast<double>()) < 0.02);
      CHECK(relative(outputs[1].cast<double>(), outputs[0].cast<double>()) > 1e-4);
      CHECK(relative(gradients[1].cast<double>(), gradients[0].cast<double>()) < 0.02);
    } else {
      CHECK(outputs[1] == outputs[0]);
      CHECK(gradients[1] == gradients[0]);
    }
  }
}

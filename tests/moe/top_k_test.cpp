// The router of the documentation's worked values. Where router.weight is the identity, x is z.
#include "moe/routers/top_k.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "core/random.hpp"
#include "moe/routers/selection.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"

#include <cmath>
#include <limits>

using namespace moelab;
using namespace moelab::moe;

namespace {

std::string top_k_yaml(Index experts, const std::string& router) {
  return fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: {}, activation: relu, d_ff: 2}}\nrouter: {{kind: top_k, "
      "{}}}\n",
      experts, router);
}

// Routes rows of logits.
Routing route(const std::string& router, const Matrix& z, bool training = true,
              const TokenBatch* batch = nullptr) {
  const test::Ffn ffn(top_k_yaml(z.cols(), router), z.cols());
  ffn.weight("router.weight").setIdentity();
  ForwardContext context = test::training_context();
  context.training = training;
  const Variable x(z);
  const TokenBatch own = test::batch_of(z.rows());
  return ffn.moe().router().route({x, batch ? *batch : own, context, {}});
}

Matrix one_row(std::initializer_list<double> values) {
  Matrix m(1, static_cast<Index>(values.size()));
  Index i = 0;
  for (const double v : values) m(0, i++) = static_cast<Scalar>(v);
  return m;
}

const Matrix kL2 = (Matrix(4, 4) << 2, 1, 0, -1, 2, 0, 1, -1, 2, 1, 0, -1, 0, 2, 1, -1).finished();

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("worked values of the weights", "[moe][router]") {
  const Matrix z = one_row({2, 1, 0, -1});
  const Routing raw = route("top_k: 2, normalize: false", z);
  CHECK(raw.choices.expert_of == Ids{0, 1});
  CHECK_THAT(raw.weights.value()(0, 0), WithinAbs(0.643914, 1e-6));
  CHECK_THAT(raw.weights.value()(1, 0), WithinAbs(0.236883, 1e-6));
  const Routing normalized = route("top_k: 2, normalize: true", z);
  CHECK_THAT(normalized.weights.value()(0, 0), WithinAbs(0.731059, 1e-6));
  CHECK_THAT(normalized.weights.value()(1, 0), WithinAbs(0.268941, 1e-6));
}

TEST_CASE("softmax with normalisation is a softmax over the chosen logits", "[moe][router]") {
  const Routing r = route("top_k: 3, normalize: true", one_row({0.3, -2, 1.7, 0.9, 0.2}));
  CHECK(r.choices.expert_of == Ids{2, 3, 0});
  const double total = std::exp(1.7) + std::exp(0.9) + std::exp(0.3);
  CHECK_THAT(r.weights.value()(0, 0), WithinAbs(std::exp(1.7) / total, 1e-12));
  CHECK_THAT(r.weights.value()(2, 0), WithinAbs(std::exp(0.3) / total, 1e-12));
}

TEST_CASE("scale multiplies after normalising, temperature divides the logits", "[moe][router]") {
  const Routing scaled = route("top_k: 2, scale: 2.5", one_row({2, 1, 0, -1}));
  CHECK_THAT(scaled.weights.value().sum(), WithinAbs(2.5, 1e-12));
  const Routing cold = route("top_k: 2, normalize: false, temperature: 0.5", one_row({1, 0.5, 0, -0.5}));
  const Routing warm = route("top_k: 2, normalize: false", one_row({2, 1, 0, -1}));
  CHECK((cold.logits.value() - warm.logits.value()).norm() < 1e-12);
  CHECK((cold.weights.value() - warm.weights.value()).norm() < 1e-12);
}

TEST_CASE("sigmoid and square root of softplus", "[moe][router]") {
  const Matrix z = one_row({0.5, -1, 2});
  const Routing sigmoid = route("top_k: 2, score: sigmoid, normalize: false", z);
  CHECK(sigmoid.choices.expert_of == Ids{2, 0});
  CHECK_THAT(sigmoid.weights.value()(0, 0), WithinAbs(1 / (1 + std::exp(-2.0)), 1e-12));
  const Routing root = route("top_k: 2, score: sqrt_softplus, normalize: false", z);
  CHECK_THAT(root.weights.value()(1, 0), WithinAbs(std::sqrt(std::log(1 + std::exp(0.5))), 1e-12));
}

TEST_CASE("the slope of every score is finite and right at logits of any size", "[moe][router]") {
  // Far below 0, softplus(z) is e^z, so sqrt(softplus) and twice its slope are e^{z/2}.
  const auto slope = [](double z) {
    const Variable x(one_row({z}), true);
    backward(router_scores("sqrt_softplus", x));
    return double{x.grad()(0, 0)};
  };
  CHECK_THAT(slope(-20), WithinAbs(std::exp(-10.0) / 2, 1e-8));
  CHECK_THAT(slope(-20), WithinRel(std::exp(-10.0) / 2, 1e-8));
  CHECK_THAT(slope(3),
             WithinRel(1 / (1 + std::exp(-3.0)) / 2 / std::sqrt(std::log(1 + std::exp(3.0))), 1e-12));
  CHECK(slope(-800) == 0);
  for (const char* score : {"softmax", "sigmoid", "sqrt_softplus"}) {
    for (const bool normalize : {false, true}) {
      const test::Ffn ffn(top_k_yaml(4, fmt::format("top_k: 3, score: {}, normalize: {}", score, normalize)) +
                              "losses: {load_balance: 1, z: 1, importance_cv2: 1, entropy: 1}\n",
                          4);
      INFO(score);
      ffn.weight("router.weight").setIdentity();
      const Variable x(one_row({-800, 3, 800, -900}), true);
      const FfnOutput output = ffn.forward(x, test::training_context());
      Variable objective = ops::sum(output.y);
      for (const AuxiliaryLoss& loss : output.losses) objective = ops::add(objective, loss.value);
      backward(objective);
      CHECK(Matrix(x.grad()).allFinite());
      CHECK(Matrix(ffn.store->grads()).allFinite());
    }
  }
}

TEST_CASE("experts whose scores are equal only for want of digits are told apart by their logits",
          "[moe][router]") {
  // softmax(1000, 0, 100, 200) is 1, 0, 0, 0 in float64, sigmoid is 1, 1/2, 1, 1; the logits say 0, 3, 2, 1.
  const Matrix z = one_row({1000, 0, 100, 200});
  for (const char* score : {"softmax", "sigmoid", "sqrt_softplus"}) {
    for (const char* more : {"", ", expert_bias: {rate: 0.1}", ", groups: {count: 1, keep: 1}",
                             ", groups: {count: 2, keep: 2, score: max}"}) {
      const std::string options = fmt::format("score: {}{}", score, more);
      INFO(options);
      CHECK(route("top_k: 2, " + options, z).choices.expert_of == Ids{0, 3});
      CHECK(route("top_k: 3, " + options, z).choices.expert_of == Ids{0, 3, 2});
      CHECK(route("top_k: 4, " + options, z).choices.expert_of == Ids{0, 3, 2, 1});
      // A temperature changes no order.
      for (const double t : {0.01, 100.0}) {
        CHECK(route(fmt::format("top_k: 3, temperature: {}, {}", t, options), z).choices.expert_of ==
              Ids{0, 3, 2});
      }
    }
  }
  // Groups {0, 1} and {2, 3}: best sigmoids 1 and 1, logits 40 and 50.
  CHECK(route("top_k: 1, normalize: false, score: sigmoid, groups: {count: 2, keep: 1, score: max}",
              one_row({40, 0, 50, 0}))
            .choices.expert_of == Ids{2});
  CHECK(route("top_k: 1, normalize: false, score: sigmoid, groups: {count: 2, keep: 1}",
              one_row({40, 45, 50, 48}))
            .choices.expert_of == Ids{2});
  // Where the scores differ, they decide with a bias or groups, and equal logits go to the lowest expert.
  CHECK(route("top_k: 2, score: sigmoid", one_row({50, 60, 60, 50})).choices.expert_of == Ids{1, 2});
  CHECK(route("top_k: 2, score: sigmoid, expert_bias: {rate: 0.1}", one_row({50, 60, 60, 60}))
            .choices.expert_of == Ids{1, 2});
}

TEST_CASE("ties go to the lowest expert", "[moe][router]") {
  CHECK(route("top_k: 2", one_row({1, 1, 1, 1})).choices.expert_of == Ids{0, 1});
  CHECK(route("top_k: 2", one_row({0, 1, 1, 1})).choices.expert_of == Ids{1, 2});
  CHECK(route("top_k: 3", one_row({1, 0, 2, 1})).choices.expert_of == Ids{2, 0, 3});
}

TEST_CASE("scores that differ in the last bits of bfloat16 are told apart", "[moe][router]") {
  CHECK(route("top_k: 1, normalize: false", one_row({1.000, 1.002})).choices.expert_of == Ids{1});
}

TEST_CASE("a logit that is not finite stops the run, naming layer and token", "[moe][router]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& row : {one_row({nan, nan, nan, nan}), one_row({1, nan, 2, 0}), one_row({nan, 1, 2, 0})}) {
    Matrix z = Matrix::Zero(3, 4);
    z.row(1) = row;
    CHECK_THROWS_AS(route("top_k: 2", z), NonFiniteError);
    CHECK_THROWS_WITH(route("top_k: 2", z), Contains("layer 0") && Contains("token 1"));
  }
}

TEST_CASE("a padding token has no choice and may hold anything", "[moe][router]") {
  Matrix z = kL2;
  z.row(2).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
  const std::vector<std::uint8_t> real{1, 1, 0, 1};
  const TokenBatch batch{1, 4, {}, real};
  // (The product with the identity spreads a NaN over its own row only.)
  const Routing r = route("top_k: 2", z, true, &batch);
  CHECK(r.choices.offsets == std::vector<Index>{0, 2, 4, 4, 6});
  CHECK(r.choices.expert_of == Ids{0, 1, 0, 2, 1, 2});
}

TEST_CASE("the expert bias moves the choice but not the weight", "[moe][router]") {
  const test::Ffn ffn(top_k_yaml(3, "top_k: 2, score: sigmoid, normalize: false, expert_bias: {rate: 0.1}"),
                      3);
  ffn.weight("router.weight").setIdentity();
  const auto state = states(*ffn.block);
  REQUIRE(state.size() == 1);
  CHECK(state[0].path == "router.expert_bias");
  *state[0].state << -1, 0, 0;
  const Variable x(one_row({2, 1, 0}));
  const TokenBatch batch = test::batch_of(1);
  const ForwardContext context = test::training_context();
  const Routing r = ffn.moe().router().route({x, batch, context, {}});
  CHECK(r.choices.expert_of == Ids{1, 2});
  CHECK_THAT(r.weights.value()(0, 0), WithinAbs(1 / (1 + std::exp(-1.0)), 1e-12));
}

TEST_CASE("the expert bias is moved against the load, once a step", "[moe][router]") {
  const std::vector<std::int64_t> counts{6, 1, 1, 0};
  Matrix bias = Matrix::Zero(1, 4);
  update_expert_bias({.rate = 1e-3, .update = "sign", .center = false}, counts, bias);
  CHECK((bias - one_row({-1e-3, 1e-3, 1e-3, 1e-3})).norm() < 1e-15);
  bias.setZero();
  update_expert_bias({.rate = 1e-3, .update = "sign", .center = true}, counts, bias);
  CHECK((bias - one_row({-1.5e-3, 0.5e-3, 0.5e-3, 0.5e-3})).norm() < 1e-15);
  bias.setZero();
  update_expert_bias({.rate = 1e-2, .update = "proportional", .center = false}, counts, bias);
  CHECK((bias - one_row({-2e-2, 0.5e-2, 0.5e-2, 1e-2})).norm() < 1e-15);
  bias.setZero();
  update_expert_bias({.rate = 1, .update = "sign", .center = true}, std::vector<std::int64_t>{2, 2, 2, 2},
                     bias);
  CHECK(bias.isZero(0));
  update_expert_bias({.rate = 1, .update = "proportional", .center = false}, std::vector<std::int64_t>(4, 0),
                     bias);
  CHECK(bias.isZero(0));
}

TEST_CASE("only experts of the best groups are chosen", "[moe][router]") {
  // Groups {0,1}, {2,3}, {4,5}: by sum of two 0.9 + 0.1, 0.6 + 0.5, 0.2 + 0.2; by maximum the first wins.
  const Matrix z = one_row({2.2, -2.2, 0.4, 0.0, -1.4, -1.4});
  const std::string common =
      "top_k: 2, score: sigmoid, normalize: false, groups: {count: 3, keep: 1, score: ";
  CHECK(route(common + "top2_sum}", z).choices.expert_of == Ids{2, 3});
  CHECK(route(common + "max}", z).choices.expert_of == Ids{0, 1});
  CHECK(route("top_k: 2, groups: {count: 2, keep: 1}", one_row({1, 1, 1, 1})).choices.expert_of == Ids{0, 1});
}

TEST_CASE("jitter changes training only, and the experts see x itself", "[moe][router]") {
  const std::string yaml = top_k_yaml(4, "top_k: 4, jitter: 0.1");
  const test::Ffn jittered(yaml, 4);
  const test::Ffn plain(top_k_yaml(4, "top_k: 4"), 4);
  Matrix x(6, 4);
  random::fill_normal(x, random::Stream(5, "x"), 1);
  CHECK(jittered.forward(x, false).y.value() == jittered.forward(x, false).y.value());
  CHECK(jittered.forward(x, false).y.value() == plain.forward(x, false).y.value());
  CHECK(jittered.forward(x, true).y.value() != plain.forward(x, true).y.value());
  // With a zero router every weight is 1/4, jitter or not: a difference could only come through the experts.
  jittered.weight("router.weight").setZero();
  plain.weight("router.weight").setZero();
  CHECK(jittered.forward(x, true).y.value() == plain.forward(x, true).y.value());
}

TEST_CASE("the raw weight of one expert has the gradient of the softmax", "[moe][router]") {
  // z = (1, 0.5, 0): dw0/dz = s0 (1 - s0), -s0 s1, -s0 s2.
  const test::Ffn ffn(top_k_yaml(3, "top_k: 1, normalize: false"), 3);
  ffn.weight("router.weight").setIdentity();
  const Variable x(one_row({1, 0.5, 0}), true);
  const TokenBatch batch = test::batch_of(1);
  const ForwardContext context = test::training_context();
  backward(ffn.moe().router().route({x, batch, context, {}}).weights);
  CHECK_THAT(x.grad()(0, 0), WithinAbs(0.249958, 1e-6));
  CHECK_THAT(x.grad()(0, 1), WithinAbs(-0.155589, 1e-6));
  CHECK_THAT(x.grad()(0, 2), WithinAbs(-0.094369, 1e-6));
}

TEST_CASE("the k largest of many, against sorting", "[moe][router]") {
  Matrix values(50, 300);
  random::fill_normal(values, random::Stream(1, "values"), 1);
  for (Index i = 0; i < values.size(); ++i) values.data()[i] = std::round(values.data()[i] * 8);  // many ties
  std::vector<std::int32_t> order(300);
  std::vector<std::int32_t> best(300);
  for (Index t = 0; t < values.rows(); ++t) {
    for (std::int32_t e = 0; e < 300; ++e) order[static_cast<std::size_t>(e)] = e;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return values(t, a) > values(t, b); });
    const Index k = 1 + t * 6;
    top_k_of(values.row(t).data(), 300, k, best.data());
    CHECK(std::equal(order.begin(), order.begin() + k, best.begin()));
  }
}

// Balance losses against values worked out by hand. The router's weight is the identity, so x is z.
#include "moe/losses.hpp"

#include "core/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/kind_examples.hpp"

#include <cmath>

#include <fmt/format.h>

using namespace moelab;
using namespace moelab::moe;

namespace {

const Matrix kL2 = (Matrix(4, 4) << 2, 1, 0, -1, 2, 0, 1, -1, 2, 1, 0, -1, 0, 2, 1, -1).finished();

std::string block(Index experts, Index top_k, const std::string& losses, const std::string& router = "") {
  return fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: {}, activation: relu, d_ff: 2}}\n"
      "router: {{kind: top_k, top_k: {}, normalize: false{}}}\nlosses: {{{}}}\n",
      experts, top_k, router, losses);
}

// The value of the only loss of a layer.
double loss(const std::string& text, const Matrix& z, const TokenBatch& batch, bool training = true) {
  const test::Ffn ffn(text, z.cols());
  ffn.weight("router.weight").setIdentity();
  ForwardContext context = test::training_context();
  context.training = training;
  const FfnOutput output = ffn.block->forward(Variable(z), batch, context);
  REQUIRE(output.losses.size() == 1);
  return output.losses[0].value.item();
}

double loss(const std::string& text, const Matrix& z) { return loss(text, z, test::batch_of(z.rows())); }

Matrix repeated(Index rows, std::initializer_list<double> values) {
  Matrix m(rows, static_cast<Index>(values.size()));
  Index i = 0;
  for (const double v : values) m.col(i++).setConstant(static_cast<Scalar>(v));
  return m;
}

}  // namespace

TEST_CASE("worked values of the load-balance loss", "[moe][losses]") {
  CHECK_THAT(loss(block(4, 2, "load_balance: 0.01"), kL2), WithinAbs(1.370905, 1e-6));
  // Logits below zero: probabilities, not logits, enter.
  CHECK_THAT(loss(block(4, 1, "load_balance: 1"), repeated(4, {-20, -21, -22, -23})),
             WithinAbs(2.575657, 1e-6));
  CHECK_THAT(loss(block(4, 1, "load_balance: 1"), repeated(4, {3, 0, 0, 0})), WithinAbs(3.480194, 1e-6));
}

TEST_CASE("the load-balance loss is 1 at perfect balance, whatever k", "[moe][losses]") {
  const Matrix one_hot = Matrix::Identity(4, 4) * 3;
  CHECK_THAT(loss(block(4, 1, "load_balance: 1"), one_hot), WithinAbs(1, 1e-12));
  CHECK_THAT(loss(block(4, 4, "load_balance: 1"), kL2), WithinAbs(1, 1e-12));
  CHECK_THAT(loss(block(4, 2, "load_balance: 1", ", score: sigmoid"), one_hot + one_hot.rowwise().reverse()),
             WithinAbs(1, 1e-12));
}

TEST_CASE("padding enters no loss", "[moe][losses]") {
  Matrix z = Matrix::Zero(4, 4);
  z.row(0) = kL2.row(0);
  z.row(1) << 0, 2, 1, -1;
  const std::vector<std::uint8_t> real{1, 1, 0, 0};
  const TokenBatch batch{1, 4, {}, real};
  CHECK_THAT(loss(block(4, 1, "load_balance: 1"), z, batch), WithinAbs(1.611856, 1e-6));
  CHECK_THAT(loss(block(4, 1, "load_balance: 1"), z),
             WithinAbs(1.268493, 1e-6));  // as if the padding were real
  const TokenBatch two{1, 2, {}, {}};
  for (const char* name : {"z", "importance_cv2", "entropy", "expert_diversity"}) {
    INFO(name);
    const std::string text = block(4, 2, fmt::format("{}: 1", name));
    CHECK_THAT(loss(text, z, batch), WithinAbs(loss(text, z.topRows(2), two), 1e-12));
    CHECK(std::abs(loss(text, z) - loss(text, z.topRows(2), two)) > 1e-3);
  }
  const std::string noisy =
      "kind: moe\nexperts: {kind: ffn, count: 4, activation: relu, d_ff: 2}\n"
      "router: {kind: noisy_top_k, top_k: 2}\nlosses: {load_cv2: 1}\n";
  CHECK_THAT(loss(noisy, z, batch, false), WithinAbs(loss(noisy, z.topRows(2), two, false), 1e-12));
  CHECK(std::abs(loss(noisy, z, test::batch_of(4), false) - loss(noisy, z.topRows(2), two, false)) > 1e-3);
}

TEST_CASE("a batch of padding alone has losses of 0", "[moe][losses]") {
  const std::vector<std::uint8_t> real{0, 0};
  const TokenBatch batch{1, 2, {}, real};
  for (const char* name : {"load_balance", "z", "importance_cv2", "entropy", "expert_diversity"}) {
    CHECK(loss(block(4, 2, fmt::format("{}: 1", name)), kL2.topRows(2), batch) == 0);
  }
}

TEST_CASE("the z loss does not overflow and is a mean over tokens", "[moe][losses]") {
  CHECK_THAT(loss(block(4, 2, "z: 1"), kL2), WithinAbs(5.954526, 1e-6));
  Matrix large(1, 2);
  large << 1000, 0;
  CHECK_THAT(loss(block(2, 1, "z: 1"), large), WithinAbs(1e6, 1e-6));
  CHECK_THAT(loss(block(8, 1, "z: 1"), Matrix::Zero(3, 8)), WithinAbs(4.324077, 1e-6));  // (log 8)^2
}

TEST_CASE("by sequence, imbalances of two sequences do not cancel", "[moe][losses]") {
  // Two sequences that each use one of two experts: balanced as a batch, collapsed one by one.
  Matrix z(4, 2);
  z << 4, 0, 4, 0, 0, 4, 0, 4;
  const TokenBatch batch = test::batch_of(4, 2);
  CHECK_THAT(loss(block(2, 1, "load_balance: {weight: 1, scope: batch}"), z, batch), WithinAbs(1, 1e-12));
  // 2 * 1 * softmax(4, 0)[0] in each.
  CHECK_THAT(loss(block(2, 1, "load_balance: {weight: 1, scope: sequence}"), z, batch),
             WithinAbs(1.964028, 1e-6));
  // A sequence without a real token is skipped.
  const std::vector<std::uint8_t> real{1, 1, 0, 0};
  const TokenBatch padded{2, 2, {}, real};
  CHECK_THAT(loss(block(2, 1, "load_balance: {weight: 1, scope: sequence}"), z, padded),
             WithinAbs(1.964028, 1e-6));
}

TEST_CASE("by sequence, tokens are counted in their own sequence, padding in none", "[moe][losses]") {
  // p = softmax(4, 0)[0]. Sequence 0: its real token 0 goes to expert 0, 2 * 1 * p. Sequence 1: tokens 2 and
  // 3 go to experts 0 and 1, 2 (p + (1 - p)) / 2 = 1. The mean of the sequences, not of the three tokens.
  Matrix z(4, 2);
  z << 4, 0, 0, 4, 4, 0, 0, 4;
  const std::vector<std::uint8_t> real{1, 0, 1, 1};
  const TokenBatch batch{2, 2, {}, real};
  const double p = 1 / (1 + std::exp(-4.0));
  CHECK_THAT(loss(block(2, 1, "load_balance: {weight: 1, scope: sequence}"), z, batch),
             WithinAbs((2 * p + 1) / 2, 1e-12));
}

TEST_CASE("two layers that collapse to different experts do not cancel", "[moe][losses]") {
  // Each layer has a loss of its own; put together before f and P are formed they would look balanced.
  double sum = 0;
  for (const auto& z : {repeated(4, {4, 0}), repeated(4, {0, 4})})
    sum += loss(block(2, 1, "load_balance: 1"), z);
  CHECK_THAT(sum / 2, WithinAbs(1.964028, 1e-6));
}

TEST_CASE("globally, f comes from the counts of the whole step", "[moe][losses]") {
  const test::Ffn ffn(block(2, 1, "load_balance: {weight: 1, scope: global}"), 2);
  ffn.weight("router.weight").setIdentity();
  CHECK(ffn.block->needs_step_counts());
  const Matrix z = repeated(4, {4, 0});
  const double alone = ffn.forward(z).losses[0].value.item();
  CHECK_THAT(alone, WithinAbs(1.964028, 1e-6));
  ffn.block->before_step(std::vector<std::int64_t>{4, 4});
  CHECK_THAT(ffn.forward(z).losses[0].value.item(), WithinAbs(1, 1e-12));
  CHECK_THAT(ffn.forward(z, false).losses[0].value.item(), WithinAbs(1.964028, 1e-6));  // evaluation: its own
  ffn.block->after_step(std::vector<std::int64_t>{4, 4}, 8);
  CHECK_THAT(ffn.forward(z).losses[0].value.item(), WithinAbs(1.964028, 1e-6));
  CHECK_FALSE(test::Ffn(block(2, 1, "load_balance: 1"), 2).block->needs_step_counts());
}

TEST_CASE("importance and entropy at balance and at collapse", "[moe][losses]") {
  const Matrix balanced = Matrix::Identity(4, 4) * 3;
  CHECK_THAT(loss(block(4, 1, "importance_cv2: 1"), balanced), WithinAbs(0, 1e-12));
  CHECK_THAT(loss(block(4, 1, "entropy: 1"), balanced), WithinAbs(-std::log(4.0), 1e-12));
  // All mass on one of four: mean 1/4, variance 3/16, CV^2 3.
  const Matrix collapsed = repeated(3, {60, 0, 0, 0});
  CHECK_THAT(loss(block(4, 1, "importance_cv2: 1"), collapsed), WithinAbs(3, 1e-9));
  CHECK_THAT(loss(block(4, 1, "entropy: 1"), collapsed), WithinAbs(0, 1e-9));
}

TEST_CASE("the smooth load looks at logits and noise at the same temperature", "[moe][losses]") {
  // Logits 4 and 2 before the temperature T, noise of deviation 1 that happens to be 0. At T = 2: the chosen
  // expert's 2 is (2 - 1) / 0.5 = 2 deviations above its threshold, the other's 1 is 2 below its own. The
  // choice, and how sure it is, do not depend on T. Loads Phi(2) and Phi(-2): CV^2 = (2 Phi(2) - 1)^2.
  for (const double temperature : {0.25, 1.0, 2.0, 10.0}) {
    INFO(temperature);
    const test::Ffn ffn(
        fmt::format("kind: moe\nexperts: {{kind: ffn, count: 2, activation: relu, d_ff: 2}}\n"
                    "router: {{kind: noisy_top_k, top_k: 1, normalize: false, temperature: {}}}\n"
                    "losses: {{load_cv2: 1}}\n",
                    temperature),
        2);
    ffn.weight("router.weight").setIdentity();
    // softplus(raw) + 0.01 = 1
    ffn.weight("router.noise_weight") << std::log(std::exp(0.99) - 1) / 4, 0,
        std::log(std::exp(0.99) - 1) / 4, 0;
    Matrix x(1, 2);
    x << 4, 2;
    const Matrix noise = Matrix::Zero(1, 2);
    const FfnOutput output =
        ffn.moe().forward(Variable(x), test::batch_of(1), test::training_context(), {&noise, {}});
    REQUIRE(output.losses.size() == 1);
    CHECK_THAT(output.losses[0].value.item(), WithinAbs(std::pow(std::erf(std::sqrt(2.0)), 2), 1e-9));
  }
}

TEST_CASE("expert diversity is the mean pairwise cosine of the chosen outputs", "[moe][losses]") {
  // Experts with positive weights on positive inputs: relu is the identity, f(x) = W2 W1 x, by hand.
  const test::Ffn ffn(
      "kind: moe\nexperts: {kind: ffn, count: 3, activation: relu, d_ff: 2}\n"
      "router: {kind: top_k, top_k: 3}\nlosses: {expert_diversity: 1}\n",
      2);
  for (Index e = 0; e < 3; ++e) ffn.weight(fmt::format("experts.{}.w1", e)).setIdentity();
  ffn.weight("experts.0.w2").setIdentity();  // (1, 1)
  ffn.weight("experts.1.w2") << 1, 0, 0, 0;  // (1, 0)
  ffn.weight("experts.2.w2").setZero();      // 0
  const FfnOutput output = ffn.forward(Matrix::Ones(5, 2));
  CHECK_THAT(output.losses[0].value.item(), WithinAbs(std::sqrt(0.5) / 3, 1e-12));
}

TEST_CASE("the gradient of a loss is in proportion to its weight and not zero", "[moe][losses]") {
  const auto router_gradient = [](double weight) {
    const test::Ffn ffn(block(4, 2, fmt::format("load_balance: {}", weight)), 4);
    ffn.weight("router.weight").setIdentity();
    const FfnOutput output = ffn.forward(kL2);
    backward(output.losses[0].value, Matrix::Constant(1, 1, static_cast<Scalar>(output.losses[0].weight)));
    return Matrix(ffn.gradient("router.weight"));
  };
  const Matrix full = router_gradient(0.02);
  CHECK(full.norm() > 1e-4);
  CHECK((full - 2 * router_gradient(0.01)).norm() < 1e-12 * full.norm());
}

TEST_CASE("the names of a layer's losses are known before it runs, for every router", "[moe][losses]") {
  for (const auto& [kind, blocks] : test::router_examples()) {
    for (const std::string& yaml : blocks) {
      INFO(yaml);
      const test::Ffn ffn(yaml, 4);
      std::vector<std::int32_t> ids(8, 1);
      TokenBatch batch = test::batch_of(8);
      batch.ids = ids;
      const Variable x(test::random_matrix(8, 4, 1));
      std::vector<std::string> names;
      for (const AuxiliaryLoss& l : ffn.block->forward(x, batch, test::training_context()).losses)
        names.push_back(l.name);
      CHECK(names == test::ffn_config(yaml).moe.loss_names());
    }
  }
}

TEST_CASE("a loss of weight 0 is not there", "[moe][losses]") {
  const test::Ffn ffn(block(4, 2, "load_balance: 0, z: 0.0"), 4);
  CHECK(ffn.forward(kL2).losses.empty());
}

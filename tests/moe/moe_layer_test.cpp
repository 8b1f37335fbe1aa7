// Identities of the mixture layer, and the layer against a naive one that works token by token.
#include "moe/moe_layer.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "moe/cost.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/naive_moe.hpp"

#include <fmt/format.h>

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 6;

test::NamedMatrices weights_of(const test::Ffn& ffn) {
  test::NamedMatrices weights;
  for (const NamedParameter& p : ffn.store->parameters()) weights.emplace(p.path, p.parameter->value());
  return weights;
}

double worst(const Matrix& a, const Matrix& b) {
  return (a - b).cwiseAbs().maxCoeff() / std::max(1e-12, static_cast<double>(b.cwiseAbs().maxCoeff()));
}

std::string block(Index experts, const std::string& router, const std::string& more = "",
                  const std::string& expert = "activation: swiglu, d_ff: 5, bias: true") {
  return fmt::format("kind: moe\nexperts: {{kind: ffn, count: {}, {}}}\nrouter: {{{}}}\n{}\n", experts,
                     expert, router, more);
}

}  // namespace

TEST_CASE("the layer equals one that works token by token", "[moe][layer]") {
  const std::vector<std::string> texts{
      block(4, "kind: top_k, top_k: 2"),
      block(5, "kind: top_k, top_k: 3, normalize: false, score: sigmoid, scale: 2.5, bias: true"),
      block(3, "kind: top_k, top_k: 1, normalize: false, score: sqrt_softplus, temperature: 0.7"),
      block(4, "kind: top_k, top_k: 2", "shared: {count: 2, activation: gelu, d_ff: 3}"),
      block(4, "kind: top_k, top_k: 2", "shared: {count: 1, activation: reglu, d_ff: 3, gate: sigmoid}"),
      "kind: moe\nexperts: [{kind: ffn, count: 2, activation: relu, d_ff: 4}, {kind: ffn, count: 1, "
      "activation: "
      "geglu_tanh, d_ff: 7}]\nrouter: {kind: top_k, top_k: 2}\n",
  };
  for (const std::string& text : texts) {
    INFO(text);
    const test::Ffn ffn(text, kWidth);
    test::randomise_parameters(*ffn.block);
    const Matrix x = test::random_matrix(300, kWidth, 1);  // more rows than a block of one expert
    const FfnConfig config = test::ffn_config(text);
    CHECK(worst(ffn.forward(x).y.value(), test::naive_moe(config.moe, weights_of(ffn), x)) < 1e-12);
  }
}

TEST_CASE("the dense FFN equals the formula for every activation", "[moe][ffn]") {
  for (const char* activation : {"relu", "gelu", "gelu_tanh", "silu", "relu_squared", "swiglu", "geglu",
                                 "geglu_tanh", "reglu", "swiglu_clamped"}) {
    INFO(activation);
    const test::Ffn ffn(fmt::format("{{kind: dense, activation: {}, d_ff: 5, bias: true}}", activation),
                        kWidth);
    test::randomise_parameters(*ffn.block, 2.0);
    const Matrix x = test::random_matrix(9, kWidth, 2);
    const Matrix y = ffn.forward(x).y.value();
    for (Index t = 0; t < x.rows(); ++t) {
      CHECK(worst(y.row(t), test::naive_ffn(activation, weights_of(ffn), "", x.row(t))) < 1e-12);
    }
  }
}

TEST_CASE("one expert equals the dense FFN: forward, gradients, one optimizer step", "[moe][layer]") {
  for (const char* expert :
       {"activation: swiglu, d_ff: 5, bias: true", "activation: gelu, d_ff: 7, dropout: 0.3",
        "activation: relu, d_ff: 4, dropout: 0.5, dropout_position: output"}) {
    for (const char* normalize : {"true", "false"}) {
      INFO(expert << ", normalize: " << normalize);
      const test::Ffn moe(block(1, fmt::format("kind: top_k, top_k: 1, normalize: {}", normalize),
                                "losses: {load_balance: 0.01}", expert),
                          kWidth);
      const test::Ffn dense(fmt::format("{{kind: dense, {}}}", expert), kWidth);
      test::randomise_parameters(*dense.block);
      for (const auto& [path, value] : weights_of(dense)) moe.weight("experts.0." + path) = value;

      const Matrix x = test::random_matrix(200, kWidth, 3);
      const Variable moe_x(x, true);
      const Variable dense_x(x, true);
      const ForwardContext context = test::training_context();
      const FfnOutput of_moe = moe.forward(moe_x, context);
      const FfnOutput of_dense = dense.forward(dense_x, context);
      CHECK(Matrix(of_moe.y.value()) == Matrix(of_dense.y.value()));
      CHECK_THAT(of_moe.losses[0].value.item(), WithinAbs(1, 1e-12));

      const Matrix dy = test::random_matrix(200, kWidth, 4);
      backward(ops::add(ops::sum(ops::multiply(of_moe.y, Variable(dy))), of_moe.losses[0].value));
      backward(of_dense.y, dy);
      CHECK(worst(moe_x.grad(), dense_x.grad()) < 1e-12);
      CHECK(moe.gradient("router.weight").cwiseAbs().maxCoeff() < 1e-12);
      for (const auto& [path, value] : weights_of(dense)) {
        CHECK(worst(moe.gradient("experts.0." + path), dense.gradient(path)) < 1e-12);
        moe.weight("experts.0." + path) -= Scalar(0.1) * moe.gradient("experts.0." + path);
        dense.weight(path) -= Scalar(0.1) * dense.gradient(path);
        CHECK(worst(moe.weight("experts.0." + path), dense.weight(path)) < 1e-12);
      }
    }
  }
}

TEST_CASE("with k = E the layer is the soft mixture of all experts", "[moe][layer]") {
  const test::Ffn ffn(block(3, "kind: top_k, top_k: 3, normalize: false"), kWidth);
  test::randomise_parameters(*ffn.block);
  const Matrix x = test::random_matrix(20, kWidth, 5);
  const auto weights = weights_of(ffn);
  const Matrix z = x * weights.at("router.weight").transpose();
  Matrix expected = Matrix::Zero(20, kWidth);
  for (Index t = 0; t < 20; ++t) {
    const Matrix p = z.row(t).array().exp() / z.row(t).array().exp().sum();
    for (Index e = 0; e < 3; ++e) {
      expected.row(t) +=
          p(0, e) * test::naive_ffn("swiglu", weights, fmt::format("experts.{}.", e), x.row(t));
    }
  }
  CHECK(worst(ffn.forward(x).y.value(), expected) < 1e-12);
}

TEST_CASE("permuting tokens permutes outputs", "[moe][layer]") {
  const test::Ffn ffn(block(4, "kind: top_k, top_k: 2"), kWidth);
  test::randomise_parameters(*ffn.block);
  const Matrix x = test::random_matrix(30, kWidth, 6);
  const std::vector<Index> order = random::permutation(30, random::Stream(1, "order"));
  Matrix permuted(30, kWidth);
  for (Index t = 0; t < 30; ++t) permuted.row(t) = x.row(order[static_cast<std::size_t>(t)]);
  const Matrix y = ffn.forward(x).y.value();
  const Matrix y_permuted = ffn.forward(permuted).y.value();
  for (Index t = 0; t < 30; ++t)
    CHECK(worst(y_permuted.row(t), y.row(order[static_cast<std::size_t>(t)])) < 1e-12);
}

TEST_CASE("permuting experts changes nothing", "[moe][layer]") {
  const std::string text = block(4, "kind: top_k, top_k: 2", "losses: {load_balance: 1, importance_cv2: 1}");
  const test::Ffn a(text, kWidth);
  const test::Ffn b(text, kWidth);
  test::randomise_parameters(*a.block);
  const Index order[4] = {2, 0, 3, 1};
  for (Index e = 0; e < 4; ++e) {
    b.weight("router.weight").row(e) = a.weight("router.weight").row(order[e]);
    for (const char* name : {"w1", "w2", "w3", "b1", "b2", "b3"}) {
      b.weight(fmt::format("experts.{}.{}", e, name)) =
          a.weight(fmt::format("experts.{}.{}", order[e], name));
    }
  }
  const Matrix x = test::random_matrix(40, kWidth, 7);
  const FfnOutput of_a = a.forward(x);
  const FfnOutput of_b = b.forward(x);
  CHECK(worst(of_b.y.value(), of_a.y.value()) < 1e-12);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK_THAT(of_b.losses[i].value.item(), WithinAbs(of_a.losses[i].value.item(), 1e-12));
  }
}

TEST_CASE("kept and dropped choices make k N, and a dropped token contributes 0", "[moe][layer]") {
  const test::Ffn ffn(block(4, "kind: top_k, top_k: 2", "capacity: {factor: 0.5, eval_factor: 1.0}"), kWidth);
  test::randomise_parameters(*ffn.block, 3.0);
  const Matrix x = test::random_matrix(32, kWidth, 8);
  const FfnOutput output = ffn.forward(x);
  const RoutingRecord& record = *output.routing;
  CHECK(record.capacity == 8);
  CHECK(ffn.forward(x, false).routing->capacity == 16);
  CHECK(record.kept.size() == 64);
  std::vector<Index> taken(4, 0);
  bool some_token_lost_all = false;
  for (Index t = 0; t < 32; ++t) {
    const std::size_t c = static_cast<std::size_t>(2 * t);
    for (const std::size_t i : {c, c + 1}) {
      if (record.kept[i] != 0) ++taken[static_cast<std::size_t>(record.expert_of[i])];
      CHECK((record.combine_of[i] != 0) == (record.kept[i] != 0));
    }
    if (record.kept[c] == 0 && record.kept[c + 1] == 0) {
      some_token_lost_all = true;
      CHECK(output.y.value().row(t).isZero(0));
    }
  }
  CHECK(some_token_lost_all);
  for (const Index rows : taken) CHECK(rows <= 8);
}

TEST_CASE("renormalised, the kept weights make up the scale again", "[moe][layer]") {
  const test::Ffn ffn(
      block(4, "kind: top_k, top_k: 2, scale: 2.5", "capacity: {factor: 0.5, renormalize: true}"), kWidth);
  test::randomise_parameters(*ffn.block, 3.0);
  const RoutingRecord record = *ffn.forward(test::random_matrix(32, kWidth, 8)).routing;
  for (std::size_t c = 0; c < 64; c += 2) {
    const double sum = record.combine_of[c] + record.combine_of[c + 1];
    if (record.kept[c] != 0 || record.kept[c + 1] != 0) CHECK_THAT(sum, WithinAbs(2.5, 1e-12));
  }
}

TEST_CASE("padding is routed nowhere, takes no capacity and gets no gradient", "[moe][layer]") {
  const std::string text =
      block(2, "kind: top_k, top_k: 1, normalize: false", "capacity: {factor: 2}\nlosses: {z: 1}");
  const test::Ffn ffn(text, kWidth);
  test::randomise_parameters(*ffn.block);
  const std::vector<std::uint8_t> real{0, 0, 1, 1};
  const TokenBatch batch{1, 4, {}, real};
  const Matrix x = Matrix(test::random_matrix(1, kWidth, 9)).replicate(4, 1);  // all want the same expert
  const Variable leaf(x, true);
  const FfnOutput output = ffn.block->forward(leaf, batch, test::training_context());
  CHECK(output.routing->num_tokens == 2);
  CHECK(output.routing->capacity == 2);
  CHECK(output.routing->kept == std::vector<std::uint8_t>{1, 1});
  CHECK(output.y.value().topRows(2).isZero(0));
  CHECK_FALSE(output.y.value().row(2).isZero(0));
  backward(ops::add(ops::sum(output.y), output.losses[0].value));
  CHECK(leaf.grad().topRows(2).isZero(0));
  CHECK_FALSE(leaf.grad().row(3).isZero(0));
}

TEST_CASE("an expert without tokens gets gradients of exactly zero", "[moe][layer]") {
  const test::Ffn ffn(block(4, "kind: top_k, top_k: 1, normalize: false"), kWidth);
  test::randomise_parameters(*ffn.block);
  const Matrix x = test::random_matrix(1, kWidth, 10).replicate(4, 1);  // all to one expert
  const FfnOutput output = ffn.forward(x);
  backward(output.y, Matrix::Ones(4, kWidth));
  const auto chosen = output.routing->expert_of[0];
  for (Index e = 0; e < 4; ++e) {
    for (const char* name : {"w1", "w2", "w3", "b1", "b2", "b3"}) {
      CHECK(ffn.gradient(fmt::format("experts.{}.{}", e, name)).isZero(0) == (e != chosen));
    }
  }
}

TEST_CASE("zero tokens, one token, fewer tokens than experts, many experts", "[moe][layer]") {
  const test::Ffn ffn(
      block(300, "kind: top_k, top_k: 8", "capacity: {factor: 1.25}\nlosses: {load_balance: 1, z: 1}",
            "activation: relu, d_ff: 2"),
      kWidth);
  for (const Index n : {0, 1, 5}) {
    const Variable x(test::random_matrix(n, kWidth, 11), true);
    const FfnOutput output = ffn.forward(x, test::training_context());
    CHECK(output.y.rows() == n);
    CHECK(output.routing->expert_of.size() == static_cast<std::size_t>(8 * n));
    CHECK(std::isfinite(output.losses[0].value.item()));
    backward(ops::add(ops::add(ops::sum(output.y), output.losses[0].value), output.losses[1].value));
  }
}

TEST_CASE("evaluation and repeated forward passes change no state", "[moe][layer]") {
  const test::Ffn ffn(
      block(4, "kind: top_k, top_k: 2, expert_bias: {rate: 0.1}", "losses: {load_balance: 1}"), kWidth);
  const Matrix x = test::random_matrix(16, kWidth, 12);
  const FfnOutput first = ffn.forward(x);
  ffn.forward(x, false);
  const FfnOutput again = ffn.forward(x);
  CHECK(Matrix(first.y.value()) == Matrix(again.y.value()));
  CHECK(first.routing->expert_of == again.routing->expert_of);
  CHECK(first.losses[0].value.item() == again.losses[0].value.item());
  CHECK(states(*ffn.block)[0].state->isZero(0));
  ffn.block->after_step(count_choices({first.routing->choice_offsets, first.routing->expert_of}, 4), 16);
  CHECK_FALSE(states(*ffn.block)[0].state->isZero(0));
}

TEST_CASE("without recording the output is the same and nothing is kept", "[moe][layer]") {
  const test::Ffn ffn(block(4, "kind: top_k, top_k: 2", "shared: {count: 1, activation: relu, d_ff: 3}"),
                      kWidth);
  const Matrix x = test::random_matrix(16, kWidth, 13);
  ForwardContext context = test::training_context();
  context.training = false;
  const Matrix recorded = ffn.forward(Variable(x), context).y.value();
  context.record = false;
  const FfnOutput plain = ffn.forward(Variable(x), context);
  CHECK_FALSE(plain.y.requires_grad());
  CHECK(recorded == Matrix(plain.y.value()));
}

TEST_CASE("parameters, their names and the planned and measured share of the compute", "[moe][layer][cost]") {
  // SwiGLU, d = 8, d_ff = 16: 3 * 8 * 16 = 384 weights an expert.
  const test::Ffn ffn(
      "kind: moe\nexperts: {kind: ffn, count: 4, activation: swiglu, d_ff: 16}\n"
      "router: {kind: top_k, top_k: 2}\nshared: {count: 1, activation: swiglu, d_ff: 8, gate: sigmoid}\n",
      8);
  CHECK(count_parameters(*ffn.block) == 4 * 384 + 4 * 8 + 192 + 8);
  CHECK(ffn.weight("router.weight").rows() == 4);
  CHECK(ffn.weight("experts.3.w3").rows() == 16);
  CHECK(ffn.weight("shared.0.w2").cols() == 8);
  CHECK(ffn.weight("shared.gate").cols() == 8);
  const double shared = 2 * (192 + 8);
  const PlannedCompute planned = planned_compute(*ffn.block);
  CHECK(planned.active_flops == 2 * 2 * 384 + shared);
  CHECK(planned.full_flops == 2 * 4 * 384 + shared);
  const RoutingRecord record = *ffn.forward(test::random_matrix(10, 8, 14)).routing;
  CHECK(record.active_flops == 10 * planned.active_flops);
  CHECK(record.full_flops == 10 * planned.full_flops);
}

TEST_CASE("FLOPs of a token count the two chosen experts of four, 1600, not all of them, 3136",
          "[moe][layer][cost]") {
  // SwiGLU, d = 8, d_ff = 16: 2 * (2 * 384 + 4 * 8) with the router; all four experts would make
  // 2 * (4 * 384 + 4 * 8). Training is three times the forward pass: 4800.
  const test::Ffn ffn(
      "kind: moe\nexperts: {kind: ffn, count: 4, activation: swiglu, d_ff: 16}\nrouter: {kind: top_k, top_k: "
      "2}\n",
      8);
  CHECK(flops_per_row(*ffn.block) == 1600);
  const RoutingRecord record = *ffn.forward(test::random_matrix(7, 8, 16)).routing;
  const double router = 2 * 4 * 8;
  CHECK(record.active_flops + 7 * router == 7 * 1600);
  CHECK(record.full_flops + 7 * router == 7 * 3136);
}

TEST_CASE("where experts choose tokens, their share depends on the length of a sequence",
          "[moe][layer][cost]") {
  const std::string expert = "activation: relu, d_ff: 4";  // 2 * 2 * 6 * 4 FLOPs a row
  const test::Ffn choice(block(4, "kind: expert_choice, top_k: 1", "", expert), kWidth);
  // ceil(10 / 4) of 10 tokens each
  CHECK(std::abs(planned_compute(*choice.block, 10).active_flops - 4 * 96 * 3 / 10.0) < 1e-9);
  const test::Ffn soft(block(4, "kind: soft, slots: 2", "", expert), kWidth);
  CHECK(planned_compute(*soft.block, 16).active_flops == 4 * 96 * 2 / 16.0);
  CHECK(planned_compute(*soft.block, 16).full_flops == 4 * 96);
  const RoutingRecord record = *soft.forward(test::random_matrix(16, kWidth, 15)).routing;
  CHECK(record.active_flops == 4 * 96 * 2);
}

TEST_CASE("granularity divides d_ff and multiplies experts and k", "[moe][layer]") {
  const std::string text = block(4, "kind: top_k, top_k: 2", "granularity: 2", "activation: relu, d_ff: 6");
  const test::Ffn ffn(text, kWidth);
  CHECK(ffn.block->num_experts() == 8);
  CHECK(ffn.block->top_k() == 4);
  CHECK(ffn.weight("experts.7.w1").rows() == 3);
  CHECK(test::ffn_config(text).moe.num_experts() == 8);
}

TEST_CASE("a layer says whether it is causal", "[moe][layer]") {
  const auto causal = [](const std::string& router, const std::string& more) {
    return test::Ffn(block(4, router, more), kWidth).block->is_causal();
  };
  CHECK(causal("kind: top_k, top_k: 2", ""));
  CHECK(causal("kind: top_k, top_k: 1, normalize: false", "capacity: {factor: 1}"));
  CHECK_FALSE(causal("kind: top_k, top_k: 2", "capacity: {factor: 1}"));
  CHECK_FALSE(
      causal("kind: top_k, top_k: 1, normalize: false", "capacity: {factor: 1, drop: batch_priority}"));
}

#include "tests/support/kind_examples.hpp"

#include <fmt/format.h>

namespace moelab::test {

namespace {

std::string layer(const std::string& router, const std::string& more = "") {
  return fmt::format(
      "kind: moe\nexperts: {{kind: ffn, count: 4, activation: swiglu, d_ff: 5, bias: true}}\nrouter: "
      "{{{}}}\n{}\n",
      router, more);
}

// Every option of the projection and of the scores, away from its default.
const std::string kProjection = "projection: mlp, init_std: 0.1, bias: true, jitter: 0.1, temperature: 0.7";
const std::string kScores = "score: sqrt_softplus, normalize: false, scale: 1.5, " + kProjection;
const std::string kChoice =
    "groups: {count: 2, keep: 1, score: max}, expert_bias: {rate: 0.01, update: proportional, center: "
    "true}, ";

std::string with_expert(const std::string& expert) {
  return fmt::format(
      "kind: moe\nexperts: [{{kind: ffn, count: 2, activation: silu, d_ff: 3}}, {{{}}}]\nrouter: {{kind: "
      "top_k, "
      "top_k: 3}}\n",
      expert);
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& router_examples() {
  static const std::map<std::string, std::vector<std::string>> examples{
      {"top_k",
       {layer("kind: top_k, top_k: 2",
              "losses: {load_balance: 0.3, z: 0.2, importance_cv2: 0.1, entropy: 0.2}"),
        layer("kind: top_k, top_k: 2, score: sigmoid, scale: 2.5, bias: true, expert_bias: {rate: 0.01, "
              "center: true}",
              "losses: {load_balance: {weight: 0.1, scope: sequence}, expert_diversity: 0.2}\n"
              "shared: {count: 1, activation: gelu, d_ff: 3, gate: sigmoid}"),
        layer("kind: top_k, top_k: 1, normalize: false, score: sqrt_softplus, temperature: 0.7, jitter: 0.1",
              "capacity: {factor: 1.0}"),
        layer("kind: top_k, top_k: 2, projection: cosine, groups: {count: 2, keep: 1, score: top2_sum}",
              "losses: {load_balance: {weight: 0.1, scope: global}}"),
        layer("kind: top_k, top_k: 2, projection: mlp, bias: true, groups: {count: 4, keep: 3, score: max}",
              "capacity: {factor: 0.75, drop: probability, renormalize: true}"),
        layer("kind: top_k, top_k: 2, " + kChoice + kScores)}},
      {"noisy_top_k",
       {layer("kind: noisy_top_k, top_k: 2", "losses: {load_cv2: 0.3, importance_cv2: 0.1}"),
        layer("kind: noisy_top_k, top_k: 2, score: sigmoid, temperature: 2", "losses: {load_cv2: 0.3}"),
        layer("kind: noisy_top_k, top_k: 2, " + kChoice + kScores)}},
      {"top_p",
       {layer("kind: top_p, p: 0.7, max_k: 3", "losses: {load_balance: 0.1, expert_diversity: 0.3}"),
        layer("kind: top_p, p: 0.5, score: softmax, normalize: false, scale: 1.5, " + kProjection)}},
      {"expert_choice",
       {layer("kind: expert_choice, top_k: 2"),
        layer("kind: expert_choice, top_k: 1, normalize: true, scale: 2",
              "losses: {z: 0.1, importance_cv2: 0.1}"),
        layer("kind: expert_choice, top_k: 2, score: softmax, " + kProjection)}},
      {"soft",
       {layer("kind: soft, slots: 2, init_std: 0.1"),
        layer("kind: soft", "shared: {count: 1, activation: relu, d_ff: 3}")}},
      {"relu",
       {layer("kind: relu, top_k: 2"), layer("kind: relu, top_k: 1, projection: cosine", "losses: {z: 0.1}"),
        layer("kind: relu, top_k: 2, " + kProjection)}},
      {"base", {layer("kind: base, init_std: 0.1")}},
      {"sinkhorn",
       {layer("kind: sinkhorn, top_k: 1, score: sigmoid, normalize: false"),
        layer("kind: sinkhorn, top_k: 2, " + kScores)}},
      {"hash", {layer("kind: hash, top_k: 2"), layer("kind: hash, top_k: 1, scale: 2.5")}},
      {"random",
       {layer("kind: random, top_k: 3"), layer("kind: random, top_k: 2, scale: 2",
                                               "capacity: {factor: 1.0, drop: random, renormalize: true}")}},
      {"frozen",
       {layer("kind: frozen, top_k: 2", "capacity: {factor: 1.0, drop: batch_priority}"),
        layer("kind: frozen, top_k: 2, " + kChoice + kScores)}},
      {"round_robin", {layer("kind: round_robin, top_k: 2, scale: 0.5")}},
  };
  return examples;
}

const std::map<std::string, std::vector<std::string>>& expert_examples() {
  static const std::map<std::string, std::vector<std::string>> examples{
      {"ffn",
       {with_expert("kind: ffn, count: 1, activation: swiglu, d_ff: 5, bias: true"),
        with_expert("kind: ffn, count: 1, activation: gelu, d_ff: 5, dropout: 0.4"),
        with_expert(
            "kind: ffn, count: 1, activation: geglu, d_ff: 5, bias: true, dropout: 0.4, dropout_position: "
            "output")}},
      {"zero", {with_expert("kind: zero, count: 1")}},
      {"copy", {with_expert("kind: copy, count: 1")}},
      {"constant", {with_expert("kind: constant, count: 2")}},
  };
  return examples;
}

}  // namespace moelab::test

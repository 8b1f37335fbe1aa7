// Routers where numbers leave the range of float64, and after very many steps.
#include "tests/moe/route.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

using namespace moelab;
using namespace moelab::moe;

namespace {

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("top_p and sinkhorn tell apart by logits what scores cannot", "[moe][router]") {
  Matrix z(1, 4);
  z << 1000, 0, 100, 200;  // softmax 1, 0, 0, 0 in float64
  CHECK(route("kind: top_p, p: 1.0", z).choices.expert_of == Ids{0});
  CHECK(route("kind: top_p, p: 1.0, temperature: 100", z).choices.expert_of[1] == 3);
  CHECK(route("kind: sinkhorn, top_k: 3", z, false).choices.expert_of == Ids{0, 3, 2});
  CHECK(route("kind: frozen, top_k: 3", z, false).choices.expert_of == Ids{0, 3, 2});
  CHECK(route("kind: noisy_top_k, top_k: 3", z, false).choices.expert_of == Ids{0, 3, 2});
}

TEST_CASE("the weight of relu's sparsity term comes back from any stretch of steps", "[moe][router]") {
  const test::Ffn ffn(block(3, "kind: relu, top_k: 1"), 3);
  const Matrix& lambda = *states(*ffn.block)[0].state;
  const auto steps = [&](int count, std::int64_t active) {
    for (int i = 0; i < count; ++i) ffn.block->after_step(std::vector<std::int64_t>{active, 0, 0}, 2);
  };
  steps(1000, 0);  // 1e-8 / 1.2^1000 = 1e-87 without a floor
  CHECK_THAT(lambda(0, 0), WithinRel(1e-12, 1e-9));
  steps(10, 6);
  CHECK_THAT(lambda(0, 0), WithinRel(1e-12 * std::pow(1.2, 10), 1e-9));
  steps(1000, 6);
  CHECK_THAT(lambda(0, 0), WithinRel(1e4, 1e-9));
  steps(10, 0);
  CHECK_THAT(lambda(0, 0), WithinRel(1e4 / std::pow(1.2, 10), 1e-9));
}

TEST_CASE("sinkhorn chooses where its scaling does not come to rest", "[moe][router]") {
  // Uniform sums would need e^-30 times a factor without bound: each step adds 2 to the ratio of the experts'
  // factors. Token 1, to which both are equal, goes to the expert that is short of tokens.
  Matrix z(2, 2);
  z << 0, -30, 0, 0;
  CHECK(route("kind: sinkhorn, top_k: 1, normalize: false", z).choices.expert_of == Ids{0, 1});
  // The same at a temperature: the token's logit for expert 1 is -1500.
  CHECK(route("kind: sinkhorn, top_k: 1, normalize: false, temperature: 0.02", z).choices.expert_of ==
        Ids{0, 1});
  // Both tokens want expert 0, token 0 more than token 1 by 5, at a temperature of 0.02 by 250.
  z << 10, 0, 5, 0;
  CHECK(route("kind: sinkhorn, top_k: 1, normalize: false, temperature: 0.02", z).choices.expert_of ==
        Ids{0, 1});
  // Second choices far below what a float32, or exp of a float64, can hold. Experts 1 and 2 are alike but for
  // the order in which the two tokens like them, so their factors are the same.
  Matrix far(2, 3);
  far << 0, -900, -800, 0, -800, -900;
  const Routing r = route("kind: sinkhorn, top_k: 2", far);
  CHECK(r.choices.expert_of == Ids{0, 2, 0, 1});
}

// Routers other than top_k, against what their papers say.
#include "core/error.hpp"
#include "core/random.hpp"
#include "moe/registry.hpp"
#include "moe/routers/balanced_assignment.hpp"
#include "moe/routers/sinkhorn.hpp"
#include "moe/routing_plan.hpp"
#include "tests/moe/route.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/kind_examples.hpp"

#include <algorithm>
#include <cmath>
#include <set>

using namespace moelab;
using namespace moelab::moe;

namespace {

Matrix log_of(std::initializer_list<double> probabilities) {
  Matrix m(1, static_cast<Index>(probabilities.size()));
  Index i = 0;
  for (const double p : probabilities) m(0, i++) = static_cast<Scalar>(std::log(p));
  return m;
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("noisy_top_k adds noise of the learned size, in training only", "[moe][router]") {
  const test::Ffn ffn(block(3, "kind: noisy_top_k, top_k: 2, temperature: 2"), 3);
  test::randomise_parameters(*ffn.block);
  const Matrix x = test::random_matrix(5, 3, 1);
  const Matrix eps = test::random_matrix(5, 3, 2);
  const Matrix clean = x * ffn.weight("router.weight").transpose();
  const Matrix raw = x * ffn.weight("router.noise_weight").transpose();
  const Matrix std = (1 + raw.array().exp()).log() + 0.01;
  ForwardContext context = test::training_context();
  const TokenBatch batch = test::batch_of(5);
  const RouterProbe probe{&eps, {}};
  const Matrix expected = (clean.array() + eps.array() * std.array()) / 2;
  CHECK((route(ffn, x, batch, context, probe).logits.value() - expected).norm() < 1e-12);
  // Its own noise is new on each step and the same when a step is repeated.
  const Matrix first = route(ffn, x, batch, context).logits.value();
  CHECK(Matrix(route(ffn, x, batch, context).logits.value()) == first);
  context.step = 1;
  CHECK(Matrix(route(ffn, x, batch, context).logits.value()) != first);
  context.training = false;
  CHECK((route(ffn, x, batch, context).logits.value() - clean / 2).norm() < 1e-12);
}

TEST_CASE("top_p takes the smallest set that reaches p", "[moe][router]") {
  const Matrix z = log_of({0.1, 0.4, 0.15, 0.35});
  CHECK(route("kind: top_p, p: 0.3", z).choices.expert_of == Ids{1});
  CHECK(route("kind: top_p, p: 0.7", z).choices.expert_of == Ids{1, 3});
  CHECK(route("kind: top_p, p: 0.8", z).choices.expert_of == Ids{1, 3, 2});
  CHECK(route("kind: top_p, p: 0.8, max_k: 2", z).choices.expert_of == Ids{1, 3});
  CHECK(route("kind: top_p, p: 1.0", z).choices.expert_of.size() == 4);
  CHECK_THAT(route("kind: top_p, p: 0.7", z).weights.value()(0, 0), WithinAbs(0.4 / 0.75, 1e-12));
  CHECK_THAT(route("kind: top_p, p: 0.7, normalize: false", z).weights.value()(0, 0), WithinAbs(0.4, 1e-12));
}

TEST_CASE("with expert_choice each expert takes its best tokens of each sequence", "[moe][router]") {
  // Scores of two experts for four tokens: 0.9 0.8 0.3 0.6 and the rest. C = ceil(4 * 1 / 2) = 2.
  Matrix z(4, 2);
  z << std::log(0.9), std::log(0.1), std::log(0.8), std::log(0.2), std::log(0.3), std::log(0.7),
      std::log(0.6), std::log(0.4);
  const Routing r = route("kind: expert_choice, top_k: 1", z);
  CHECK(r.choices.offsets == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(r.choices.expert_of == Ids{0, 0, 1, 1});
  CHECK_THAT(r.weights.value()(3, 0), WithinAbs(0.4, 1e-12));
  // As two sequences of two, C = 1.
  const Routing two = route("kind: expert_choice, top_k: 1", z, test::batch_of(4, 2));
  CHECK(two.choices.offsets == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(two.choices.expert_of == Ids{0, 1, 1, 0});
  // Every expert has the same number of tokens, whatever the scores, and padding is not taken.
  const std::vector<std::uint8_t> real{1, 1, 1, 1, 1, 0, 0, 0};
  const TokenBatch batch{1, 8, {}, real};
  const Routing padded = route("kind: expert_choice, top_k: 2", test::random_matrix(8, 4, 3), batch);
  CHECK(count_choices(padded.choices, 4) == std::vector<std::int64_t>(4, 3));  // ceil(5 * 2 / 4)
  CHECK(padded.choices.offsets[8] == padded.choices.offsets[5]);
}

TEST_CASE("relu routing weighs with the positive logits and steers its sparsity", "[moe][router]") {
  const test::Ffn ffn(block(3, "kind: relu, top_k: 1"), 3);
  ffn.weight("router.weight").setIdentity();
  Matrix z(2, 3);
  z << 0.5, -1, 2, -1, -2, -3;
  const Routing r = route(ffn, z, test::batch_of(2), test::training_context());
  CHECK(r.choices.offsets == std::vector<Index>{0, 2, 2});
  CHECK(r.choices.expert_of == Ids{2, 0});
  CHECK(r.weights.value()(0, 0) == 2);
  REQUIRE(r.losses.size() == 1);
  CHECK_THAT(r.losses[0].value.item(), WithinAbs(1.25, 1e-12));
  CHECK_THAT(r.losses[0].weight, WithinRel(1e-8, 1e-12));
  const Matrix& lambda = *states(*ffn.block)[0].state;
  ffn.block->after_step(std::vector<std::int64_t>{1, 1, 1}, 2);  // density 3/6 above 1/3
  CHECK_THAT(lambda(0, 0), WithinRel(1.2e-8, 1e-12));
  ffn.block->after_step(std::vector<std::int64_t>{1, 0, 0}, 2);
  CHECK_THAT(lambda(0, 0), WithinRel(1e-8, 1e-12));
  ffn.block->after_step(std::vector<std::int64_t>{1, 0, 1}, 2);  // exactly 1/3
  CHECK_THAT(lambda(0, 0), WithinRel(1e-8, 1e-12));
}

TEST_CASE("soft routing mixes tokens into slots within a sequence", "[moe][router]") {
  const test::Ffn ffn(block(2, "kind: soft, slots: 3"), 4);
  test::randomise_parameters(*ffn.block);
  const std::vector<std::uint8_t> real{1, 1, 1, 1, 0, 1};
  const TokenBatch batch{2, 3, {}, real};
  const Routing r = route(ffn, test::random_matrix(6, 4, 4), batch, test::training_context());
  REQUIRE(r.mixing.has_value());
  const Matrix dispatch = r.mixing->dispatch.value();
  const Matrix combine = r.mixing->combine.value();
  for (Index b = 0; b < 2; ++b) {
    CHECK((dispatch.middleRows(3 * b, 3).colwise().sum().array() - 1).abs().maxCoeff() < 1e-12);
  }
  for (Index t = 0; t < 6; ++t) CHECK_THAT(combine.row(t).sum(), WithinAbs(t == 4 ? 0 : 1, 1e-12));
  CHECK(dispatch.row(4).isZero(0));
  CHECK(r.choices.expert_of.empty());
}

TEST_CASE("sinkhorn balances rows and columns, and its choice is balanced", "[moe][router]") {
  const Matrix z = test::random_matrix(64, 4, 5, 2.0);
  const Matrix balanced = sinkhorn(z);
  CHECK((balanced.rowwise().sum().array() * 64 - 1).abs().maxCoeff() < 0.02);
  CHECK((balanced.colwise().sum().array() * 4 - 1).abs().maxCoeff() < 1e-9);
  Matrix skewed = z;
  skewed.col(0).array() += 3;
  const std::string router = "kind: sinkhorn, top_k: 1, normalize: false";
  const auto most = [](const Routing& r) {
    const auto counts = count_choices(r.choices, 4);
    return *std::max_element(counts.begin(), counts.end());
  };
  CHECK(most(route(router, skewed, false)) > 40);
  CHECK(most(route(router, skewed, true)) < 26);
  // A factor on a row changes nothing, however large.
  Matrix shifted = z;
  shifted.row(3).array() += 1000;
  CHECK((sinkhorn(shifted) - balanced).cwiseAbs().maxCoeff() < 1e-12);
  CHECK(sinkhorn(Matrix(0, 4)).rows() == 0);
}

TEST_CASE("the balanced assignment is the best one, against trying all", "[moe][router]") {
  for (unsigned stream = 0; stream < 20; ++stream) {
    for (const Index n : {1, 5, 6, 7}) {
      const Matrix s = test::random_matrix(n, 3, 100 + stream);
      const Ids found = balanced_assignment(s);
      std::vector<Index> sizes(3, 0);
      double sum = 0;
      for (Index t = 0; t < n; ++t) {
        ++sizes[static_cast<std::size_t>(found[static_cast<std::size_t>(t)])];
        sum += s(t, found[static_cast<std::size_t>(t)]);
      }
      CHECK(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()) <=
            1);
      double best = -1e9;
      for (Index code = 0; code < static_cast<Index>(std::pow(3, n)); ++code) {
        std::vector<Index> count(3, 0);
        double total = 0;
        Index rest = code;
        for (Index t = 0; t < n; ++t, rest /= 3) {
          ++count[static_cast<std::size_t>(rest % 3)];
          total += s(t, rest % 3);
        }
        if (*std::max_element(count.begin(), count.end()) - *std::min_element(count.begin(), count.end()) <=
            1) {
          best = std::max(best, total);
        }
      }
      CHECK_THAT(sum, WithinAbs(best, 1e-9));
    }
  }
}

TEST_CASE("a balanced assignment of many rows that all want the same expert", "[moe][router]") {
  Matrix s = test::random_matrix(515, 16, 6);
  s.col(3).array() += 10;
  const Ids found = balanced_assignment(s);
  std::vector<Index> sizes(16, 0);
  for (const auto e : found) ++sizes[static_cast<std::size_t>(e)];
  CHECK(*std::max_element(sizes.begin(), sizes.end()) == 33);
  CHECK(*std::min_element(sizes.begin(), sizes.end()) == 32);
  // No exchange of two rows is a gain.
  for (std::size_t a = 0; a < found.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const auto ra = static_cast<Index>(a);
      const auto rb = static_cast<Index>(b);
      REQUIRE(s(ra, found[b]) + s(rb, found[a]) <= s(ra, found[a]) + s(rb, found[b]) + 1e-9);
    }
  }
}

TEST_CASE("base keeps a share of the token itself", "[moe][router]") {
  const test::Ffn ffn(block(2, "kind: base"), 2);
  ffn.weight("router.weight").setIdentity();
  for (const char* w : {"w1", "w2"}) {
    for (Index e = 0; e < 2; ++e) ffn.weight(fmt::format("experts.{}.{}", e, w)).setZero();
  }
  Matrix x(2, 2);
  x << 2, 0, 1, 0;  // both want expert 0; the balanced assignment gives it the first
  const FfnOutput output = ffn.forward(x);
  CHECK(output.routing->expert_of == Ids{0, 1});
  CHECK_THAT(output.y.value()(0, 0), WithinAbs(2 * (1 - 1 / (1 + std::exp(-2.0))), 1e-12));
  CHECK_THAT(output.y.value()(1, 0), WithinAbs(0.5, 1e-12));  // sigmoid(x . c_1) = sigmoid(0)
  CHECK(ffn.forward(x, false).routing->expert_of == Ids{0, 0});
}

TEST_CASE("the hash router depends on the token id and the layer alone", "[moe][router]") {
  const Ids ids{5, 7, 5, 5, 9};
  const Matrix x = Matrix::Zero(5, 2);
  TokenBatch batch = test::batch_of(5);
  batch.ids = ids;
  const auto choices = [&](Index layer, std::uint64_t step) {
    const test::Ffn ffn(block(8, "kind: hash, top_k: 3"), 2, 1, {2, layer, 4});
    ForwardContext context = test::training_context();
    context.step = step;
    return route(ffn, x, batch, context).choices.expert_of;
  };
  const Ids first = choices(0, 0);
  CHECK(std::equal(first.begin(), first.begin() + 3, first.begin() + 6));
  CHECK(std::equal(first.begin(), first.begin() + 3, first.begin() + 9));
  for (std::size_t t = 0; t < 5; ++t)
    CHECK(std::set<std::int32_t>(&first[3 * t], &first[3 * t] + 3).size() == 3);
  CHECK(choices(0, 17) == first);
  CHECK(choices(1, 0) != first);
  const test::Ffn ffn(block(8, "kind: hash, top_k: 3"), 2);
  CHECK_THROWS_WITH(route(ffn, x, test::batch_of(5), test::training_context()), Contains("token"));
}

TEST_CASE("hash and random use all experts evenly", "[moe][router]") {
  Ids ids;
  for (std::int32_t t = 0; t < 8000; ++t) ids.push_back(t);
  TokenBatch batch = test::batch_of(8000);
  batch.ids = ids;
  for (const char* kind : {"hash", "random"}) {
    const test::Ffn ffn(block(8, fmt::format("kind: {}, top_k: 2", kind)), 2);
    const Routing r = route(ffn, Matrix::Zero(8000, 2), batch, test::training_context());
    for (const std::int64_t c : count_choices(r.choices, 8)) CHECK(std::abs(c - 2000) < 200);  // 5 deviations
    CHECK(r.weights.value().minCoeff() == 0.5);
  }
}

TEST_CASE("the random router draws anew on each step", "[moe][router]") {
  const test::Ffn ffn(block(8, "kind: random, top_k: 8"), 2);
  const test::Ffn two(block(8, "kind: random, top_k: 2"), 2);
  const Matrix x = Matrix::Zero(20, 2);
  ForwardContext context = test::training_context();
  CHECK(route(ffn, x, test::batch_of(20), context).choices.size() == 160);
  const Ids first = route(two, x, test::batch_of(20), context).choices.expert_of;
  for (std::size_t t = 0; t < 20; ++t) CHECK(first[2 * t] != first[2 * t + 1]);
  CHECK(route(two, x, test::batch_of(20), context).choices.expert_of == first);
  context.step = 1;
  CHECK(route(two, x, test::batch_of(20), context).choices.expert_of != first);
}

TEST_CASE("round robin takes the experts in turn", "[moe][router]") {
  const test::Ffn ffn(block(4, "kind: round_robin, top_k: 3"), 2);
  const Routing r = route(ffn, Matrix::Zero(3, 2), test::batch_of(3), test::training_context());
  CHECK(r.choices.expert_of == Ids{0, 1, 2, 0, 1, 3, 0, 2, 3});  // sorted within a token
  CHECK_THAT(r.weights.value()(0, 0), WithinAbs(1.0 / 3, 1e-15));
}

TEST_CASE("the weights of a control sum to its scale, as those of top_k do, after drops too",
          "[moe][router]") {
  const Matrix x = test::random_matrix(12, 4, 9);
  const Ids ids{5, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
  TokenBatch batch = test::batch_of(12);
  batch.ids = ids;
  for (const char* kind : {"top_k", "frozen", "hash", "random", "round_robin"}) {
    INFO(kind);
    const std::string router = fmt::format("kind: {}, top_k: 2, scale: 2.5", kind);
    const test::Ffn ffn(block(4, router), 4);
    const Routing r = route(ffn, x, batch, test::training_context());
    const ConstMatrixView w = r.weights.value();
    for (Index t = 0; t < 12; ++t) CHECK_THAT(w(2 * t, 0) + w(2 * t + 1, 0), WithinAbs(2.5, 1e-12));
    if (std::string(kind) != "top_k" && std::string(kind) != "frozen") CHECK(w.minCoeff() == 1.25);

    // Renormalised after a drop, what is left of a token weighs 2.5 again.
    const test::Ffn tight(block(4, router) + "capacity: {factor: 0.5, renormalize: true}\n", 4);
    const FfnOutput out = tight.block->forward(Variable(x), batch, test::training_context());
    Index dropped = 0;
    for (Index t = 0; t < 12; ++t) {
      double sum = 0;
      for (std::size_t c = 2 * static_cast<std::size_t>(t); c < 2 * static_cast<std::size_t>(t) + 2; ++c) {
        sum += out.routing->combine_of[c];
        dropped += out.routing->kept[c] == 0 ? 1 : 0;
      }
      CHECK((sum == 0 || std::abs(sum - 2.5) < 1e-12));
    }
    CHECK(dropped >= 12);  // 24 choices, 4 experts of 3 rows
  }
}

TEST_CASE("a frozen router has no gradient and the others have one", "[moe][router]") {
  for (const char* kind : {"top_k", "frozen"}) {
    const test::Ffn ffn(block(4, fmt::format("kind: {}, top_k: 2", kind)), 3);
    test::randomise_parameters(*ffn.block);
    backward(ffn.forward(test::random_matrix(10, 3, 8)).y, Matrix::Ones(10, 3));
    CHECK(ffn.gradient("router.weight").isZero(0) == (std::string(kind) == "frozen"));
  }
}

// Changing a later token must not change an earlier one's output, unless the layer says that it is not
// causal.
TEST_CASE("causality of every registered router is as declared", "[moe][router][causal]") {
  constexpr Index kTokens = 12;
  for (const std::string& kind : router_kinds().names()) {
    REQUIRE(test::router_examples().count(kind) == 1);
    bool seen_dependence = false;
    bool some_causal = false;
    for (const std::string& text : test::router_examples().at(kind)) {
      INFO(text);
      const test::Ffn ffn(text, 6);
      test::randomise_parameters(*ffn.block, 2.0);
      Ids ids(kTokens, 3);
      TokenBatch batch = test::batch_of(kTokens);
      batch.ids = ids;
      const Matrix x = test::random_matrix(kTokens, 6, 30);
      const Matrix y = ffn.block->forward(Variable(x), batch, test::training_context()).y.value();
      bool depends = false;
      for (unsigned change = 0; change < 10; ++change) {
        Matrix other = x;
        other.bottomRows(6) = test::random_matrix(6, 6, 40 + change, 2.0);
        const Matrix y_other = ffn.block->forward(Variable(other), batch, test::training_context()).y.value();
        depends = depends || (y_other - y).topRows(6).cwiseAbs().maxCoeff() > 1e-12;
      }
      if (ffn.block->is_causal()) {
        CHECK_FALSE(depends);
        some_causal = true;
      }
      seen_dependence = seen_dependence || depends;
    }
    INFO(kind);
    CHECK((some_causal || seen_dependence));  // what is called not causal shows it
  }
}

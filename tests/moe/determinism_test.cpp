// One training step has the same bits at any number of threads, for every registered kind.
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "core/parallel.hpp"
#include "core/random.hpp"
#include "moe/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/kind_examples.hpp"

#include <cstdint>
#include <vector>

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 32;
constexpr Index kTokens = 700;

Matrix random_rows(Index rows, std::string_view name) {
  Matrix m(rows, kWidth);
  random::fill_normal(m, random::Stream(3, name), 1);
  return m;
}

// Output, gradient of x, all parameters after a step of plain gradient descent, and all state after it.
std::vector<Matrix> step(const std::string& yaml, int threads,
                         gemm::Precision precision = gemm::Precision::float32) {
  parallel::set_threads(threads);
  const test::Ffn ffn(yaml, kWidth);
  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < kTokens; ++t) ids.push_back(t * 31 % 97);
  TokenBatch batch = test::batch_of(kTokens, 50);
  batch.ids = ids;
  const Variable x(random_rows(kTokens, "x"), true);
  ForwardContext context = test::training_context();
  context.precision = precision;
  const FfnOutput output = ffn.block->forward(x, batch, context);
  std::vector<Matrix> result{output.y.value()};
  Variable objective = ops::sum(ops::multiply(output.y, Variable(random_rows(kTokens, "dy"))));
  for (const AuxiliaryLoss& loss : output.losses)
    objective = ops::add(objective, ops::scale(loss.value, loss.weight));
  backward(objective);
  if (!output.routing->expert_of.empty()) {
    ffn.block->after_step(count_choices({output.routing->choice_offsets, output.routing->expert_of}, 4),
                          kTokens);
  }
  result.emplace_back(x.grad());
  for (const NamedParameter& p : ffn.store->parameters()) {
    if (p.parameter->trainable) p.parameter->value() -= Scalar(0.1) * p.parameter->grad();
    result.emplace_back(p.parameter->value());
  }
  for (const NamedState& s : states(*ffn.block)) result.push_back(*s.state);
  parallel::set_threads(0);
  return result;
}

template <class Options>
void check_all(const KindTable<Options>& kinds,
               const std::map<std::string, std::vector<std::string>>& examples) {
  for (const std::string& kind : kinds.names()) {
    REQUIRE(examples.count(kind) == 1);
    for (const std::string& yaml : examples.at(kind)) {
      INFO(yaml);
      const std::vector<Matrix> one = step(yaml, 1);
      for (const Matrix& m : one) CHECK(m.allFinite());
      for (const int threads : {2, 3, 8}) CHECK(step(yaml, threads) == one);
    }
  }
}

}  // namespace

TEST_CASE("a training step of every router has the same bits at 1, 2, 3 and 8 threads",
          "[moe][determinism]") {
  check_all(router_kinds(), test::router_examples());
}

TEST_CASE("a training step of every expert has the same bits at 1, 2, 3 and 8 threads",
          "[moe][determinism]") {
  check_all(expert_kinds(), test::expert_examples());
}

TEST_CASE("one hot expert, with many blocks of rows, has the same bits at any number of threads",
          "[moe][determinism]") {
  const std::string yaml =
      "kind: moe\nexperts: {kind: ffn, count: 4, activation: swiglu, d_ff: 40, bias: true}\n"
      "router: {kind: top_k, top_k: 4}\n";
  // 700 rows an expert: weights are packed, and gradients are sums over chunks.
  for (const gemm::Precision precision : {gemm::Precision::float32, gemm::Precision::bfloat16}) {
    const std::vector<Matrix> one = step(yaml, 1, precision);
    for (const int threads : {2, 3, 8}) CHECK(step(yaml, threads, precision) == one);
  }
}

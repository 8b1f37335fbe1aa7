// Every registered router and expert in a layer: gradients of the output and of all losses, by x and by every
// parameter, against finite differences.
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "moe/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/kind_examples.hpp"

#include <cstdint>
#include <optional>
#include <vector>

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 6;
constexpr Index kTokens = 8;

std::string mismatch(const std::string& yaml) {
  const test::Ffn ffn(yaml, kWidth);
  test::randomise_parameters(*ffn.block);
  std::vector<std::int32_t> ids;
  for (std::int32_t t = 0; t < kTokens; ++t) ids.push_back(t * 7 % 5);
  TokenBatch batch = test::batch_of(kTokens, kTokens / 2);
  batch.ids = ids;
  const std::vector<std::uint8_t> real{1, 1, 1, 1, 1, 1, 0, 1};
  batch.is_real = real;
  // Finite differences mean nothing where they change a choice: then other inputs are tried.
  for (unsigned stream = 21; stream < 31; ++stream) {
    std::optional<RoutingRecord> first;
    bool flipped = false;
    const auto f = [&](const std::vector<Variable>& x) {
      const FfnOutput output = ffn.block->forward(x[0], batch, test::training_context());
      if (!first) first = output.routing;
      flipped =
          flipped ||
          (first && (first->expert_of != output.routing->expert_of || first->kept != output.routing->kept));
      std::vector<Variable> terms;
      std::vector<double> weights;
      for (const AuxiliaryLoss& loss : output.losses) {
        terms.push_back(loss.value);
        weights.push_back(loss.weight);
      }
      return ops::add(output.y, ops::weighted_sum(terms, weights));
    };
    std::string result =
        test::gradient_mismatch(f, {test::random_matrix(kTokens, kWidth, stream)}, *ffn.block);
    if (!flipped) return result;
  }
  return "a choice flipped with all inputs";
}

template <class Options>
void check_all(const KindTable<Options>& kinds,
               const std::map<std::string, std::vector<std::string>>& examples) {
  for (const std::string& kind : kinds.names()) {
    INFO(kind);
    REQUIRE(examples.count(kind) == 1);
    for (const std::string& yaml : examples.at(kind)) {
      INFO(yaml);
      CHECK(mismatch(yaml) == "");
    }
  }
}

}  // namespace

TEST_CASE("gradients of every registered router", "[moe][gradient]") {
  check_all(router_kinds(), test::router_examples());
}

TEST_CASE("gradients of every registered expert", "[moe][gradient]") {
  check_all(expert_kinds(), test::expert_examples());
}

TEST_CASE("gradients of the dense FFN", "[moe][gradient]") {
  for (const char* yaml : {"{kind: dense, activation: gelu, d_ff: 5, bias: true, dropout: 0.3}",
                           "{kind: dense, activation: swiglu, d_ff: 7}"}) {
    CHECK(mismatch(yaml) == "");
  }
}

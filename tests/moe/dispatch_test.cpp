// Experts and combine as one operation against the same as two.
#include "moe/dispatch.hpp"

#include "core/error.hpp"
#include "core/random.hpp"
#include "moe/experts/ffn_options.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ffn_yaml.hpp"

using namespace moelab;
using namespace moelab::moe;

namespace {

constexpr Index kWidth = 6;
constexpr Index kExperts = 3;
constexpr Index kTokens = 700;  // several blocks of an expert, several chunks of a weight's gradient

Matrix random_matrix(Index rows, Index cols, const char* name) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(1, name), 1);
  return m;
}

struct Bank : Module {
  Bank() {
    FfnExpertOptions options;
    options.activation = "swiglu";
    options.d_ff = 5;
    options.bias = true;
    for (Index e = 0; e < kExperts; ++e) experts.push_back(options.make({kWidth, 0, 1, e}));
    store = std::make_unique<ParameterStore>(*this, 1);
    for (const NamedParameter& p : store->parameters()) {
      p.parameter->value() = random_matrix(p.parameter->rows(), p.parameter->cols(), p.path.c_str());
      p.parameter->mark_changed();
    }
    store->zero_grads();
  }
  void visit(Visitor& visitor) override {
    for (std::size_t e = 0; e < experts.size(); ++e)
      visitor.module("experts." + std::to_string(e), *experts[e], "experts");
  }
  Experts experts;
  std::unique_ptr<ParameterStore> store;
};

// Two experts a token; every seventh choice is dropped, every eleventh token is padding.
std::shared_ptr<const RoutingPlan> some_plan() {
  Choices choices;
  std::vector<std::uint8_t> kept;
  choices.offsets.push_back(0);
  for (Index t = 0; t < kTokens; ++t) {
    for (Index k = 0; k < (t % 11 == 0 ? 0 : 2); ++k) {
      choices.expert_of.push_back(static_cast<std::int32_t>((t * t + k) % kExperts));
      kept.push_back(choices.size() % 7 == 0 ? 0 : 1);
    }
    choices.offsets.push_back(choices.size());
  }
  return std::make_shared<const RoutingPlan>(make_routing_plan(choices, kept, kExperts));
}

struct Result {
  Matrix y, dx, dweights;
  std::vector<Matrix> gradients;
};

Result run(bool as_one, gemm::Precision precision) {
  Bank bank;
  const auto plan = some_plan();
  ForwardContext context = test::training_context();
  context.precision = precision;
  const Variable x(random_matrix(kTokens, kWidth, "x"), true);
  const Variable weights(random_matrix(plan->num_choices(), 1, "weights"), true);
  const Variable y = as_one ? run_and_combine(bank.experts, x, weights, plan, context)
                            : combine(run_experts(bank.experts, x, plan, context), weights, plan);
  Result result{Matrix(y.value()), {}, {}, {}};
  backward(y, random_matrix(kTokens, kWidth, "dy"));
  result.dx = x.grad();
  result.dweights = weights.grad();
  for (const NamedParameter& p : bank.store->parameters()) result.gradients.emplace_back(p.parameter->grad());
  return result;
}

}  // namespace

TEST_CASE("experts and combine as one operation give the bits of two", "[moe][dispatch]") {
  for (const gemm::Precision precision : {gemm::Precision::float32, gemm::Precision::bfloat16}) {
    const Result one = run(true, precision);
    const Result two = run(false, precision);
    CHECK(one.y == two.y);
    CHECK(one.dx == two.dx);
    CHECK(one.dweights == two.dweights);
    CHECK(one.gradients == two.gradients);
    for (Index t = 0; t < kTokens; t += 11) CHECK(one.dx.row(t).isZero(0));  // padding
    CHECK(one.dweights.cwiseAbs().maxCoeff() > 0);
    CHECK(one.gradients.front().cwiseAbs().maxCoeff() > 0);
  }
}

TEST_CASE("weights that do not fit the plan are an error", "[moe][dispatch]") {
  Bank bank;
  const auto plan = some_plan();
  const Variable x(Matrix::Zero(kTokens, kWidth));
  CHECK_THROWS_WITH(run_and_combine(bank.experts, x, Variable(Matrix::Zero(3, 1)), plan, {}),
                    Contains("3 weights for"));
  CHECK_THROWS_WITH(run_and_combine(bank.experts, Variable(Matrix::Zero(5, kWidth)),
                                    Variable(Matrix::Zero(plan->num_choices(), 1)), plan, {}),
                    Contains("5 rows"));
}

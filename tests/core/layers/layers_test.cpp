#include "core/layers/attention.hpp"
#include "core/layers/embedding.hpp"
#include "core/layers/norm.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/norm.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>
#include <map>

using namespace moelab;
using test::gradient_mismatch;
using test::random_matrix;

namespace {

const ForwardContext kTraining{.training = true, .record = true};
const ForwardContext kEvaluation{};

using Shapes = std::map<std::string, std::pair<Index, Index>>;

// What a module declares, by path.
struct Declared {
  Shapes parameters, products;
  std::vector<Index> attention_widths;
};

Declared declared(Module& module) {
  class Reader : public Visitor {
   public:
    Declared found;

   private:
    void on_parameter(const std::string& path, Parameter& p) override {
      found.parameters[path] = {p.rows(), p.cols()};
    }
    void on_product(const std::string& path, const ProductCount& p) override {
      found.products[path] = {p.out, p.in};
    }
    void on_attention(const std::string&, Index width, Index kv_width, bool) override {
      found.attention_widths = {width, kv_width};
    }
  } reader;
  reader.module("m", module, "any");
  return reader.found;
}

}  // namespace

TEST_CASE("self-attention declares its parameters, products and widths", "[layers]") {
  SelfAttention with_bias({.d_model = 8, .num_heads = 4, .num_kv_heads = 2, .bias = true});
  const Declared all = declared(with_bias);
  const Shapes weights{{"m.wq", {8, 8}}, {"m.wk", {4, 8}}, {"m.wv", {4, 8}}, {"m.wo", {8, 8}}};
  CHECK(all.products == weights);
  Shapes with = weights;
  with.insert({{"m.bq", {1, 8}}, {"m.bk", {1, 4}}, {"m.bv", {1, 4}}, {"m.bo", {1, 8}}});
  CHECK(all.parameters == with);
  CHECK(all.attention_widths == std::vector<Index>{8, 4});
  SelfAttention without({.d_model = 8, .num_heads = 2, .num_kv_heads = 2});
  CHECK(count_parameters(without) == 256);  // 4 d^2
  CHECK_THROWS_WITH(SelfAttention({.d_model = 9, .num_heads = 2}), Contains("d_model=9"));
}

TEST_CASE("self-attention has the right gradients in inputs and parameters", "[layers][gradient]") {
  for (const double dropout : {0.0, 0.3}) {
    SelfAttention module({.d_model = 8,
                          .num_heads = 2,
                          .num_kv_heads = 1,
                          .bias = true,
                          .dropout = dropout,
                          .rotary = std::make_shared<ops::RotaryTable>(3, 4, 10000.0)});
    ParameterStore store(module, 1);
    test::randomise_parameters(module);
    const auto f = [&](const std::vector<Variable>& x) { return module.forward(x[0], 3, {}, kTraining); };
    CHECK(gradient_mismatch(f, {random_matrix(6, 8, 1)}, module) == "");
  }
}

TEST_CASE("attention dropout is active in training only", "[layers]") {
  SelfAttention module({.d_model = 4, .num_heads = 1, .num_kv_heads = 1, .dropout = 0.5});
  ParameterStore store(module, 1);
  test::randomise_parameters(module);
  const Variable x(random_matrix(6, 4, 1));
  const Matrix evaluated = module.forward(x, 3, {}, kEvaluation).value();
  CHECK(module.forward(x, 3, {}, kEvaluation).value() == evaluated);
  CHECK_FALSE(module.forward(x, 3, {}, kTraining).value() == evaluated);
}

TEST_CASE("a norm has the parameters of its kind", "[layers][gradient]") {
  const auto kind = [](NormOptions::Kind k) { return NormOptions{.kind = k, .epsilon = 0.1}; };
  Norm rms(5, kind(NormOptions::Kind::rms)), layer(5, kind(NormOptions::Kind::layer));
  CHECK(declared(rms).parameters == Shapes{{"m.g", {1, 5}}});
  CHECK(declared(layer).parameters == Shapes{{"m.g", {1, 5}}, {"m.b", {1, 5}}});
  Norm plain(5, {.kind = NormOptions::Kind::layer, .affine = false});
  CHECK(declared(plain).parameters.empty());
  for (Norm* norm : {&rms, &layer}) {
    ParameterStore store(*norm, 1);
    test::randomise_parameters(*norm);
    const auto f = [&](const std::vector<Variable>& x) { return norm->forward(x[0], kTraining); };
    CHECK(gradient_mismatch(f, {random_matrix(3, 5, 1)}, *norm) == "");
  }
  CHECK_THROWS_WITH(Norm(5, {.epsilon_outside = true}), Contains("LayerNorm"));
}

TEST_CASE("a tied head adds its gradient to that of the embedding", "[layers][gradient]") {
  struct Tied : Module {
    Embedding embed{6, 4};
    Head head{4, 6, &embed};
    void visit(Visitor& v) override {
      v.module("embed", embed, "embedding");
      v.module("head", head, "head");
    }
  } module;
  CHECK(declared(module).parameters == Shapes{{"m.embed", {6, 4}}});
  CHECK(declared(module).products == Shapes{{"m.head", {6, 4}}});
  ParameterStore store(module, 1);
  test::randomise_parameters(module);
  const std::vector<std::int32_t> ids{1, 5, 1};
  const auto f = [&](const std::vector<Variable>&) {
    return module.head.forward(ops::tanh(module.embed.forward(ids, kTraining)), kTraining);
  };
  CHECK(gradient_mismatch(f, {}, module) == "");
  const Matrix table = module.embed.table().value();
  CHECK((module.embed.forward(ids, kTraining).value().row(1) - table.row(5)).norm() == 0);
  CHECK_THROWS_WITH(Head(4, 7, &module.embed), Contains("(7, 4) tied to a table (6, 4)"));
}

TEST_CASE("an untied head has a table of its own, and the product of a tied one", "[layers]") {
  Head head(4, 6, nullptr);
  CHECK(declared(head).parameters == Shapes{{"m", {6, 4}}});
  CHECK(declared(head).products == Shapes{{"m", {6, 4}}});
  // d = 8, V = 32: 2 * 8 * 32 = 512 FLOPs a token, whose table it is.
  Embedding embed(32, 8);
  for (Embedding* table : {static_cast<Embedding*>(nullptr), &embed}) {
    Head counted(8, 32, table);
    const Shapes products = declared(counted).products;
    REQUIRE(products.size() == 1);
    CHECK(2 * products.at("m").first * products.at("m").second == 512);
  }
}

TEST_CASE("output projections start smaller, by the number of sub-layers", "[layers]") {
  CHECK_THAT(residual_std(8), WithinAbs(0.02 / 4, 1e-15));
  SelfAttention module({.d_model = 64, .num_heads = 1, .num_kv_heads = 1, .num_layers = 8});
  ParameterStore store(module, 1);
  const auto std_of = [](const Parameter& p) {
    return std::sqrt(p.value().squaredNorm() / static_cast<double>(p.size()));
  };
  for (const NamedParameter& p : parameters(module)) {
    const double expected = p.path == "wo" ? 0.005 : 0.02;
    // Five standard errors of a standard deviation over 4096 numbers.
    CHECK(std::abs(std_of(*p.parameter) / expected - 1) < 5 / std::sqrt(2.0 * 4096));
  }
}

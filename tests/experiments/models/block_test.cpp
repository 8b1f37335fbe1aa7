#include "experiments/models/block.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/loss.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"

#include <cmath>

using namespace moelab;
using test::random_matrix;

namespace {

const ForwardContext kTraining{.training = true, .record = true};
const ForwardContext kEvaluation{};

// tanh(x W^T): an FFN simple enough to follow by hand.
class TanhFfn : public moe::FfnBlock {
 public:
  explicit TanhFfn(Index d) : map_(d, d, false, 0.5) {}
  moe::FfnOutput forward(const Variable& x, const moe::TokenBatch&, const ForwardContext& context) override {
    moe::FfnOutput output;
    output.y = ops::tanh(map_.forward(x, context));
    return output;
  }
  void visit(Visitor& visitor) override { map_.visit(visitor, "w", "b"); }

 private:
  Linear map_;
};

BlockOptions options(bool pre_norm, NormOptions::Kind kind, double dropout = 0) {
  BlockOptions o;
  o.attention = {
      .d_model = 4, .num_heads = 2, .num_kv_heads = 1, .bias = true, .causal = true, .dropout = dropout};
  o.norm = {.kind = kind, .epsilon = 0.01};
  o.pre_norm = pre_norm;
  o.dropout = dropout;
  o.name = "layers.3";
  return o;
}

Block make_block(const BlockOptions& o) { return {o, std::make_unique<TanhFfn>(o.attention.d_model)}; }

const moe::TokenBatch kBatch{.num_sequences = 2, .seq_len = 3, .ids = {}, .is_real = {}};

// The parts of the block by themselves, with the same weights.
struct Parts {
  explicit Parts(const BlockOptions& o)
      : norm1(o.attention.d_model, o.norm),
        attn(o.attention),
        norm2(o.attention.d_model, o.norm),
        ffn(o.attention.d_model) {}
  Norm norm1;
  SelfAttention attn;
  Norm norm2;
  TanhFfn ffn;
  Matrix normed(Norm& norm, const Matrix& x) { return norm.forward(Variable(x), kEvaluation).value(); }
  Matrix attended(const Matrix& x) { return attn.forward(Variable(x), 3, {}, kEvaluation).value(); }
  Matrix through_ffn(const Matrix& x) { return ffn.forward(Variable(x), kBatch, kEvaluation).y.value(); }
};

// Gives the part the values that the block has under `prefix`.
void copy_parameters(Module& block, const std::string& prefix, Module& part) {
  for (const NamedParameter& to : parameters(part)) {
    for (const NamedParameter& from : parameters(block)) {
      if (from.path == prefix + "." + to.path) to.parameter->value() = from.parameter->value();
    }
  }
}

}  // namespace

TEST_CASE("pre-norm and post-norm blocks are what their formulas say", "[models]") {
  for (const bool pre_norm : {true, false}) {
    for (const auto kind : {NormOptions::Kind::rms, NormOptions::Kind::layer}) {
      const BlockOptions o = options(pre_norm, kind);
      Block block = make_block(o);
      ParameterStore store(block, 1);
      test::randomise_parameters(block);
      Parts parts(o);
      ParameterStore norm1(parts.norm1, 2), attn(parts.attn, 2), norm2(parts.norm2, 2), ffn(parts.ffn, 2);
      copy_parameters(block, "norm1", parts.norm1);
      copy_parameters(block, "attn", parts.attn);
      copy_parameters(block, "norm2", parts.norm2);
      copy_parameters(block, "ffn", parts.ffn);

      const Matrix x = random_matrix(6, 4, 1);
      Matrix expected;
      if (pre_norm) {
        const Matrix h = x + parts.attended(parts.normed(parts.norm1, x));
        expected = h + parts.through_ffn(parts.normed(parts.norm2, h));
      } else {
        const Matrix h = parts.normed(parts.norm1, x + parts.attended(x));
        expected = parts.normed(parts.norm2, h + parts.through_ffn(h));
      }
      const Matrix y = block.forward(Variable(x), kBatch, kEvaluation).y.value();
      CHECK((y - expected).cwiseAbs().maxCoeff() < 1e-14);
    }
  }
}

TEST_CASE("a block has the right gradients, dropout included", "[models][gradient]") {
  for (const bool pre_norm : {true, false}) {
    Block block = make_block(options(pre_norm, NormOptions::Kind::layer, 0.2));
    ParameterStore store(block, 1);
    test::randomise_parameters(block);
    const auto f = [&](const std::vector<Variable>& x) { return block.forward(x[0], kBatch, kTraining).y; };
    CHECK(test::gradient_mismatch(f, {random_matrix(6, 4, 1)}, block) == "");
  }
}

TEST_CASE("dropout draws other numbers in every layer, sub-layer and step, and none in evaluation",
          "[models]") {
  BlockOptions o = options(true, NormOptions::Kind::rms, 0.5);
  const Matrix x = random_matrix(6, 4, 1);
  const auto output = [&](const BlockOptions& with, const ForwardContext& context) {
    Block block = make_block(with);
    ParameterStore store(block, 1);
    return Matrix(block.forward(Variable(x), kBatch, context).y.value());
  };
  ForwardContext next_step = kTraining;
  next_step.step = 1;
  const Matrix y = output(o, kTraining);
  CHECK(output(o, kTraining) == y);
  CHECK_FALSE(output(o, next_step) == y);
  BlockOptions other = o;
  other.name = "layers.4";
  CHECK_FALSE(output(other, kTraining) == y);
  CHECK(output(o, kEvaluation) == output(other, kEvaluation));
}

TEST_CASE("a block tells the observer what it computes, in order", "[models]") {
  const bool pre_norm = GENERATE(true, false);
  Block block = make_block(options(pre_norm, NormOptions::Kind::rms));
  ParameterStore store(block, 1);
  std::vector<std::string> seen;
  const ForwardContext::Observer observer = [&](const std::string& path, const Variable&) {
    seen.push_back(path);
  };
  ForwardContext context;
  context.observer = &observer;
  block.forward(Variable(random_matrix(6, 4, 1)), kBatch, context);
  if (pre_norm) {
    CHECK(seen == std::vector<std::string>{"layers.3.norm1", "layers.3.attn", "layers.3.attn.residual",
                                           "layers.3.norm2", "layers.3.ffn", "layers.3.ffn.residual"});
  } else {
    CHECK(seen == std::vector<std::string>{"layers.3.attn", "layers.3.attn.residual", "layers.3.norm1",
                                           "layers.3.ffn", "layers.3.ffn.residual", "layers.3.norm2"});
  }
}

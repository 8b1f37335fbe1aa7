#include "core/error.hpp"
#include "core/ops/attention.hpp"
#include "core/ops/embedding.hpp"
#include "core/ops/linear.hpp"
#include "core/ops/loss.hpp"
#include "core/ops/matmul.hpp"
#include "core/ops/norm.hpp"
#include "moe/make_ffn.hpp"
#include "tests/oracle/binding.hpp"
#include "tests/oracle/kinds.hpp"

#include <memory>

namespace moelab::oracle {

namespace {

// Weights of a case as leaves of the tape, by name.
class Leaves {
 public:
  explicit Leaves(const Case& c) {
    for (const auto& [name, array] : c.weights) leaves_.emplace(name, Variable(array.matrix(), true));
  }
  // Undefined where the case has no such weight.
  Variable operator[](const std::string& name) const {
    const auto found = leaves_.find(name);
    return found == leaves_.end() ? Variable() : found->second;
  }
  void gradients(Comparison& comparison) const {
    for (const auto& [name, leaf] : leaves_) comparison.gradient(name, leaf.grad());
  }

 private:
  std::map<std::string, Variable> leaves_;
};

void finish(const Case& c, Comparison& out, const std::string& main, const Variable& y, const Variable& x,
            const std::string& x_name) {
  const Array& probe = c.probe.value();
  const Variable loss = probed(y, probe);
  out.output(main, y.value());
  out.loss(loss.item(), absolute_terms(y, probe));
  backward(loss);
  if (x.defined()) out.gradient(x_name, x.grad());
}

void run_ffn(const Case& c, Comparison& out) {
  const Variable x(c.input_of("x").matrix(), true);
  const auto ffn = moe::make_ffn(c.config_as<moe::FfnConfig>(), {x.cols(), 0, 1});
  BoundModule bound(*ffn, c);
  ForwardContext context;
  context.record = true;
  context.training = c.training;
  moe::TokenBatch batch;
  batch.num_sequences = 1;
  batch.seq_len = x.rows();
  const Variable y = ffn->forward(x, batch, context).y;
  out.output("param_count", static_cast<double>(count_parameters(*ffn)));
  finish(c, out, "y", y, x, "x");
  bound.gradients(out);
}

void run_layer_norm(const Case& c, Comparison& out) {
  const Variable x(c.input_of("x").matrix(), true);
  const Leaves w(c);
  const Variable y = ops::layer_norm(x, w["g"], w["b"], number_at(c.config, "eps", 1e-5),
                                     flag_at(c.config, "epsilon_outside", false));
  finish(c, out, "y", y, x, "x");
  w.gradients(out);
}

void run_rms_norm(const Case& c, Comparison& out) {
  const Variable x(c.input_of("x").matrix(), true);
  const Leaves w(c);
  finish(c, out, "y", ops::rms_norm(x, w["g"], number_at(c.config, "eps", 1e-5)), x, "x");
  w.gradients(out);
}

void run_cross_entropy(const Case& c, Comparison& out) {
  const Variable logits(c.input_of("logits").matrix(), true);
  const std::vector<std::int32_t> targets = c.input_of("targets").ids();
  const ops::TaskLoss loss = ops::cross_entropy(
      logits, targets, static_cast<std::int32_t>(integer_at(c.config, "ignore_index", -100)));
  out.output("cross_entropy", loss.mean.item());
  out.output("counted", static_cast<double>(loss.num_counted));
  out.loss(loss.mean.item(), loss.mean.item());
  backward(loss.mean);
  out.gradient("logits", logits.grad());
}

void run_tied_embedding(const Case& c, Comparison& out) {
  const Leaves w(c);
  const std::vector<std::int32_t> ids = c.input_of("ids").ids();
  const auto times_transposed = [](const Variable& a, const Variable& b) {
    return linear(a, b, Variable(), gemm::Precision::float32);
  };
  const Variable rows = ops::embedding(w["embed"], ids);
  const Variable logits = times_transposed(times_transposed(rows, w["mid"]), w["embed"]);
  out.output("rows", rows.value());
  finish(c, out, "logits", logits, Variable(), "");
  w.gradients(out);
}

void run_attention(const Case& c, Comparison& out) {
  const Variable x(c.input_of("x").matrix(), true);
  const Leaves w(c);
  ops::AttentionOptions options;
  options.num_heads = integer_at(c.config, "num_heads", 1);
  options.num_kv_heads = integer_at(c.config, "num_kv_heads", options.num_heads);
  options.causal = flag_at(c.config, "causal", true);
  const Index seq_len = c.seq_len.value_or(x.rows());
  if (text_at(c.config, "position", "none") == "rope") {
    options.rotary = std::make_shared<ops::RotaryTable>(seq_len, x.cols() / options.num_heads,
                                                        number_at(c.config, "rope_theta", 10000));
  }
  const auto map = [&](const Variable& in, const char* weight, const char* bias) {
    return linear(in, w[weight], w[bias], gemm::Precision::float32);
  };
  const Variable mixed =
      ops::attention(map(x, "wq", "bq"), map(x, "wk", "bk"), map(x, "wv", "bv"), seq_len, {}, options);
  finish(c, out, "y", map(mixed, "wo", "bo"), x, "x");
  w.gradients(out);
}

}  // namespace

const std::vector<Kind> kLayerKinds{
    {"ffn", run_ffn},
    {"layer_norm", run_layer_norm},
    {"rms_norm", run_rms_norm},
    {"cross_entropy", run_cross_entropy},
    {"tied_embedding", run_tied_embedding},
    {"attention", run_attention},
};

}  // namespace moelab::oracle

#include "core/error.hpp"
#include "core/layers/attention.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"
#include "experiments/config/model_config.hpp"
#include "experiments/models/block.hpp"
#include "moe/make_ffn.hpp"
#include "moe/moe_layer.hpp"
#include "tests/oracle/binding.hpp"
#include "tests/oracle/choice_tables.hpp"
#include "tests/oracle/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace moelab::oracle {

namespace {

// The `model:` block of a case. `norm_affine` is no field of experiments.
ModelConfig model_config(yaml::Node node) {
  node.erase("norm_affine");
  return read_config<ModelConfig>(node);
}

BlockOptions block_options(const yaml::Node& node, Index seq_len) {
  const ModelConfig config = model_config(node);
  BlockOptions options;
  options.attention.d_model = config.d_model;
  options.attention.num_heads = config.num_heads;
  options.attention.num_kv_heads = config.kv_heads();
  options.attention.bias = config.attention_bias;
  options.attention.causal = config.kind == "decoder";
  if (config.position == "rope") {
    options.attention.rotary = std::make_shared<const ops::RotaryTable>(
        seq_len, config.d_model / config.num_heads, config.rope_theta);
  }
  options.norm.kind = config.norm == "rms" ? NormOptions::Kind::rms : NormOptions::Kind::layer;
  options.norm.epsilon = config.norm_eps;
  options.norm.epsilon_outside = config.epsilon_outside;
  options.norm.affine = flag_at(node, "norm_affine", true);
  options.pre_norm = config.norm_position == "pre";
  options.dropout = config.dropout;
  return options;
}

ForwardContext recording(const Case& c) {
  ForwardContext context;
  context.record = true;
  context.training = c.training;
  return context;
}

moe::TokenBatch rows_in_sequences(const Case& c, Index rows) {
  moe::TokenBatch batch;
  batch.seq_len = c.seq_len.value_or(rows);
  batch.num_sequences = rows / batch.seq_len;
  return batch;
}

// A mixture inside of a block, with the logits z of its router within reach.
class ProbedMixture : public moe::FfnBlock {
 public:
  ProbedMixture(const moe::MoeConfig& config, const moe::FfnShape& shape) : layer_(config, shape) {}

  moe::FfnOutput forward(const Variable& x, const moe::TokenBatch& batch,
                         const ForwardContext& context) override {
    offset_ = Variable(Matrix::Zero(x.rows(), layer_.num_experts()), true);
    moe::RouterProbe probe;
    probe.logits_offset = offset_;
    logits_ = layer_.router().route({x, batch, context, probe}).logits.value();
    return layer_.forward(x, batch, context, probe);
  }
  void visit(Visitor& visitor) override { layer_.visit(visitor); }
  Index num_experts() const override { return layer_.num_experts(); }
  const Matrix& logits() const { return logits_; }
  Matrix logits_gradient() const { return offset_.grad(); }

 private:
  moe::MoeLayer layer_;
  Variable offset_;
  Matrix logits_;
};

void mixture_outputs(const Case& c, Comparison& out, const moe::FfnOutput& ffn,
                     const ProbedMixture& mixture) {
  const moe::RoutingRecord& record = *ffn.routing;
  const Index places = out.wants("ids") ? c.output.at("ids").cols() : 0;
  const ChoiceTables tables = choice_tables(record, {}, places);
  std::vector<double> counts(static_cast<std::size_t>(record.num_experts), 0);
  for (const std::int32_t e : record.expert_of) ++counts[static_cast<std::size_t>(e)];
  out.output("logits", mixture.logits());
  out.output("scores", record.scores);
  out.output("ids", tables.ids);
  out.output("weights", tables.weights);
  out.output("counts", std::span<const double>(counts));
}

void run_block(const Case& c, Comparison& out) {
  const Variable x(c.input_of("x").matrix(), true);
  const moe::TokenBatch batch = rows_in_sequences(c, x.rows());
  const moe::FfnConfig config = model_config(c.config).ffn;
  const moe::FfnShape shape{x.cols(), 0, 1};
  ProbedMixture* mixture = nullptr;
  std::unique_ptr<moe::FfnBlock> ffn;
  if (config.kind == "moe") {
    auto probed_mixture = std::make_unique<ProbedMixture>(config.moe.expanded(), shape);
    mixture = probed_mixture.get();
    ffn = std::move(probed_mixture);
  } else {
    ffn = moe::make_ffn(config, shape);
  }
  Block block(block_options(c.config, batch.seq_len), std::move(ffn));
  BoundModule bound(block, c);
  const moe::FfnOutput result = block.forward(x, batch, recording(c));
  out.output("y", result.y.value());
  const Array& probe = c.probe.value();
  std::vector<Variable> terms{probed(result.y, probe)};
  std::vector<double> factors{1};
  double aux = 0, absolute = absolute_terms(result.y, probe);
  for (const moe::AuxiliaryLoss& loss : result.losses) {
    out.output("loss." + loss.name, loss.value.item());
    terms.push_back(loss.value);
    factors.push_back(loss.weight);
    aux += loss.weight * loss.value.item();
    absolute += std::abs(loss.weight * loss.value.item());
  }
  out.output("aux", aux);
  if (mixture != nullptr) mixture_outputs(c, out, result, *mixture);
  const Variable loss = ops::weighted_sum(terms, factors);
  out.loss(loss.item(), absolute);
  backward(loss);
  out.gradient("x", x.grad());
  if (mixture != nullptr) out.gradient("logits", mixture->logits_gradient());
  bound.gradients(out);
}

// Only the weights below a prefix, under their names without it.
Case below(const Case& c, const std::string& prefix) {
  Case part = c;
  part.weights.clear();
  for (const auto& [name, array] : c.weights) {
    if (name.rfind(prefix, 0) == 0) part.weights[name.substr(prefix.size())] = array;
  }
  return part;
}

// An encoder layer shown step by step (demo.*), and a stack of two.
void run_encoder_tutorial(const Case& c, Comparison& out) {
  const Variable x(c.input_of("x").matrix(), true);
  const moe::TokenBatch batch = rows_in_sequences(c, x.rows());
  const ForwardContext context = recording(c);
  const BlockOptions options = block_options(c.config, batch.seq_len);
  const moe::FfnConfig ffn = model_config(c.config).ffn;
  const moe::FfnShape shape{x.cols(), 0, 1};
  {
    SelfAttention attention(options.attention);
    Norm norm(x.cols(), options.norm);
    const auto dense = moe::make_ffn(ffn, shape);
    const Case attention_case = below(c, "demo.attn."), ffn_case = below(c, "demo.ffn.");
    BoundModule bound_attention(attention, attention_case);
    BoundModule bound_ffn(*dense, ffn_case);
    const Variable attended = attention.forward(x.detach(), batch.seq_len, {}, context);
    const Variable x1 = norm.forward(ops::add(x.detach(), attended), context);
    const Variable x2 = norm.forward(ops::add(x1, dense->forward(x1, batch, context).y), context);
    out.output("attn_out", attended.value());
    out.output("x1", x1.value());
    out.output("x2", x2.value());
  }
  std::vector<std::unique_ptr<Block>> layers;
  std::vector<std::unique_ptr<BoundModule>> bound;
  Variable h = x;
  for (Index i = 0; i < integer_at(c.config, "num_layers", 2); ++i) {
    const std::string prefix = fmt::format("layers.{}.", i);
    layers.push_back(std::make_unique<Block>(options, moe::make_ffn(ffn, shape)));
    bound.push_back(std::make_unique<BoundModule>(*layers.back(), c, prefix));
    h = layers.back()->forward(h, batch, context).y;
    out.output(fmt::format("layer{}", i + 1), h.value());
  }
  const Array& probe = c.probe.value();
  const Variable loss = probed(h, probe);
  out.loss(loss.item(), absolute_terms(h, probe));
  backward(loss);
  out.gradient("x", x.grad());
  for (const auto& b : bound) b->gradients(out);
}

// The parameters of a module as torch lists those of the same shape: q, k and v in one tensor.
std::vector<double> sizes_of(Module& module, bool fused) {
  std::map<std::string, double> sizes;
  for (const NamedParameter& p : parameters(module)) {
    std::string name = p.path;
    for (const char* part : {"wq", "wk", "wv", "bq", "bk", "bv"}) {
      const std::string path = std::string("attn.") + part;
      if (fused && name == path) name = part[0] == 'w' ? "attn.w_in" : "attn.b_in";
    }
    sizes[name] += static_cast<double>(p.parameter->size());
  }
  std::vector<double> values;
  for (const auto& [name, size] : sizes) values.push_back(size);
  std::sort(values.begin(), values.end());
  return values;
}

std::unique_ptr<Module> module_of(const Case& c) {
  const std::string kind = text_at(c.config, "kind", "attention");
  const Index d_model = c.d_model.value_or(integer_at(c.config, "d_model", 0));
  if (kind == "dense" || kind == "moe") return moe::make_ffn(c.config_as<moe::FfnConfig>(), {d_model, 0, 1});
  if (kind == "attention") {
    SelfAttentionOptions options;
    options.d_model = d_model;
    options.num_heads = integer_at(c.config, "num_heads", 1);
    options.num_kv_heads = integer_at(c.config, "num_kv_heads", options.num_heads);
    options.bias = flag_at(c.config, "attention_bias", false);
    return std::make_unique<SelfAttention>(options);
  }
  const ModelConfig config = model_config(c.config);
  return std::make_unique<Block>(block_options(c.config, 1), moe::make_ffn(config.ffn, {d_model, 0, 1}));
}

void run_parameter_table(const Case& c, Comparison& out) {
  const std::unique_ptr<Module> module = module_of(c);
  out.output("total", static_cast<double>(count_parameters(*module)));
  const std::vector<std::string>& names = c.text.at("names");
  const bool fused = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find("in_proj") != std::string::npos;
  });
  // The order of the tensors differs; as sorted lists they are the same.
  const std::vector<double> sizes = sizes_of(*module, fused);
  std::vector<double> expected = c.output.at("counts").values;
  std::sort(expected.begin(), expected.end());
  out.output("counts", std::span<const double>(sizes == expected ? c.output.at("counts").values : sizes));
}

}  // namespace

const std::vector<Kind> kModelKinds{
    {"block", run_block},
    {"encoder_tutorial", run_encoder_tutorial},
    {"parameter_table", run_parameter_table},
};

}  // namespace moelab::oracle

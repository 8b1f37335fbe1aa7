#include "experiments/bench/layer_case.hpp"

#include "core/error.hpp"
#include "core/random.hpp"
#include "moe/make_ffn.hpp"
#include "moe/routers/top_k.hpp"

#include <algorithm>

namespace moelab::bench {

namespace {

constexpr std::uint64_t kSeed = 0;

moe::FfnConfig mixture(const LayerShape& shape) {
  moe::FfnConfig config;
  config.kind = "moe";
  moe::ExpertGroup group;
  group.count = shape.num_experts;
  group.expert.set_kind("ffn");
  auto& expert = group.expert.as<moe::FfnExpertOptions>();
  expert.activation = "swiglu";
  expert.d_ff = shape.d_ff;
  config.moe.experts = {group};
  config.moe.router.set_kind("top_k");
  config.moe.router.as<moe::TopKOptions>().choice.top_k = shape.top_k;
  return config;
}

moe::FfnConfig dense(const LayerShape& shape) {
  moe::FfnConfig config;
  config.kind = "dense";
  config.dense.activation = "swiglu";
  config.dense.d_ff = shape.d_ff * shape.top_k;
  return config;
}

Matrix normal(Index rows, Index cols, std::string_view name) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(kSeed, name), 1);
  return m;
}

}  // namespace

std::string LayerShape::name() const {
  return fmt::format("T{} d{} ff{} E{} k{}", tokens, d_model, d_ff, num_experts, top_k);
}

double LayerShape::flops() const { return 2.0 * 3.0 * static_cast<double>(tokens * top_k * d_model * d_ff); }

LayerCase::LayerCase(const LayerShape& shape, gemm::Precision precision)
    : LayerCase(shape, precision, false) {}

std::unique_ptr<LayerCase> LayerCase::dense_twin(const LayerShape& shape, gemm::Precision precision) {
  return std::unique_ptr<LayerCase>(new LayerCase(shape, precision, true));
}

LayerCase::LayerCase(const LayerShape& shape, gemm::Precision precision, bool is_dense)
    : tokens_(shape.tokens),
      layer_(moe::make_ffn(is_dense ? dense(shape) : mixture(shape), {.d_model = shape.d_model})),
      store_(std::make_unique<ParameterStore>(*layer_, kSeed)),
      x_(normal(shape.tokens, shape.d_model, "bench/x"), true),
      dy_(normal(shape.tokens, shape.d_model, "bench/dy")) {
  context_.precision = precision;
  context_.training = true;
}

void LayerCase::forward() {
  context_.record = false;
  layer_->forward(x_.detach(), {.num_sequences = 1, .seq_len = tokens_, .ids = {}, .is_real = {}}, context_);
}

void LayerCase::forward_backward() {
  store_->zero_grads();
  for (const NamedParameter& p : store_->parameters()) p.parameter->mark_changed();
  x_.grad().setZero();
  context_.record = true;
  const moe::FfnOutput output =
      layer_->forward(x_, {.num_sequences = 1, .seq_len = tokens_, .ids = {}, .is_real = {}}, context_);
  backward(output.y, dy_);
}

std::vector<Index> LayerCase::rows_of_experts() {
  context_.record = false;
  const moe::FfnOutput output =
      layer_->forward(x_, {.num_sequences = 1, .seq_len = tokens_, .ids = {}, .is_real = {}}, context_);
  require(output.routing.has_value(), "[bench] the rows of experts of a dense FFN");
  std::vector<Index> rows(static_cast<std::size_t>(output.routing->num_experts));
  for (const std::int32_t e : output.routing->expert_of) ++rows[static_cast<std::size_t>(e)];
  return rows;
}

}  // namespace moelab::bench

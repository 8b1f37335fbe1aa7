#include "experiments/models/stack.hpp"

#include "core/error.hpp"
#include "core/ops/embedding.hpp"
#include "moe/make_ffn.hpp"

#include <utility>

namespace moelab {

namespace {

NormOptions norm_options(const ModelConfig& config) {
  return {.kind = config.norm == "layer" ? NormOptions::Kind::layer : NormOptions::Kind::rms,
          .epsilon = config.norm_eps,
          .epsilon_outside = config.epsilon_outside};
}

BlockOptions block_options(const ModelConfig& config, bool causal,
                           const std::shared_ptr<const ops::RotaryTable>& rotary, Index layer) {
  BlockOptions options;
  options.attention = {.d_model = config.d_model,
                       .num_heads = config.num_heads,
                       .num_kv_heads = config.kv_heads(),
                       .bias = config.attention_bias,
                       .causal = causal,
                       .dropout = config.dropout,
                       .rotary = rotary,
                       .num_layers = config.num_layers};
  options.norm = norm_options(config);
  options.pre_norm = config.norm_position == "pre";
  options.dropout = config.dropout;
  options.name = fmt::format("layers.{}", layer);
  return options;
}

}  // namespace

Stack::Stack(const ModelConfig& config, Index seq_len, bool causal) : seq_len_(seq_len) {
  if (config.position == "learned") position_.emplace(seq_len, config.d_model);
  if (config.position == "sinusoidal") {
    sinusoids_ = Variable(ops::sinusoidal_positions(seq_len, config.d_model));
  }
  std::shared_ptr<const ops::RotaryTable> rotary;
  if (config.position == "rope") {
    require(config.num_heads > 0 && config.d_model % config.num_heads == 0,
            "[model] d_model={} is not divisible by num_heads={}", config.d_model, config.num_heads);
    rotary =
        std::make_shared<ops::RotaryTable>(seq_len, config.d_model / config.num_heads, config.rope_theta);
  }
  for (Index layer = 0; layer < config.num_layers; ++layer) {
    layers_.push_back(std::make_unique<Block>(
        block_options(config, causal, rotary, layer),
        moe::make_ffn(config.ffn_of(layer),
                      {.d_model = config.d_model, .layer = layer, .num_layers = config.num_layers})));
  }
  if (config.norm_position == "pre") final_norm_.emplace(config.d_model, norm_options(config));
}

Stack::Output Stack::forward(Variable x, const moe::TokenBatch& batch, const ForwardContext& context) {
  require(batch.seq_len <= seq_len_, "[model] sequences of {} in a model for at most {}", batch.seq_len,
          seq_len_);
  if (sinusoids_.defined()) x = ops::add_positions(x, sinusoids_, batch.seq_len);
  if (position_) x = ops::add_positions(x, Variable(position_->table(), context.record), batch.seq_len);
  context.observe("embed", x);
  Output output;
  for (const std::unique_ptr<Block>& layer : layers_) {
    moe::FfnOutput ffn = layer->forward(x, batch, context);
    x = std::exchange(ffn.y, Variable());
    output.ffn.push_back(std::move(ffn));
  }
  output.x = final_norm_ ? final_norm_->forward(x, context) : x;
  if (final_norm_) context.observe("final_norm", output.x);
  return output;
}

void Stack::visit(Visitor& visitor) {
  if (position_) visitor.module("position", *position_, "embedding");
  for (std::size_t i = 0; i < layers_.size(); ++i) visitor.module(fmt::format("layers.{}", i), *layers_[i]);
  if (final_norm_) visitor.module("final_norm", *final_norm_, "norm");
}

std::vector<moe::FfnBlock*> Stack::ffn_blocks() {
  std::vector<moe::FfnBlock*> blocks;
  for (const std::unique_ptr<Block>& layer : layers_) blocks.push_back(&layer->ffn());
  return blocks;
}

}  // namespace moelab

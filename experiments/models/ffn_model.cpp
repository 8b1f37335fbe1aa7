#include "experiments/models/ffn_model.hpp"

#include "core/ops/elementwise.hpp"
#include "core/ops/loss.hpp"
#include "moe/make_ffn.hpp"
#include "moe/padding.hpp"

#include <cmath>
#include <utility>

namespace moelab {

// Starts at a size that keeps that of its input: there is no norm after it.
FfnModel::Projection::Projection(Index in, Index out)
    : map_(in, out, true, 1 / std::sqrt(static_cast<double>(in))) {}

FfnModel::FfnModel(const ModelConfig& config, Index num_features, Index num_targets)
    : residual_(config.residual) {
  if (num_features != config.d_model || num_targets != config.d_model) {
    in_.emplace(num_features, config.d_model);
    out_.emplace(config.d_model, num_targets);
  }
  for (Index layer = 0; layer < config.num_layers; ++layer) {
    ffns_.push_back(moe::make_ffn(
        config.ffn_of(layer), {.d_model = config.d_model, .layer = layer, .num_layers = config.num_layers}));
  }
}

ModelOutput FfnModel::forward(const Batch& batch, const ForwardContext& context) {
  ModelOutput output;
  const moe::TokenBatch tokens{batch.num_sequences, batch.seq_len, {}, batch.is_real};
  Variable x = moe::zero_padding(Variable(batch.features), tokens);
  if (in_) {
    x = in_->forward(x, context);
    context.observe("in", x);
  }
  for (std::size_t i = 0; i < ffns_.size(); ++i) {
    moe::FfnOutput ffn = ffns_[i]->forward(x, tokens, context);
    const Variable y = std::exchange(ffn.y, Variable());
    const std::string path = fmt::format("layers.{}.ffn", i);
    context.observe(path, y);
    x = residual_ ? ops::add(x, y) : y;
    if (residual_) context.observe(path + ".residual", x);
    output.ffn.push_back(std::move(ffn));
  }
  if (out_) x = out_->forward(x, context);
  context.observe("out", x);
  ops::TaskLoss loss = ops::squared_error(x, batch.regression_targets, batch.is_real);
  output.loss = std::move(loss.mean);
  output.target_losses = std::move(loss.rows);
  output.num_counted = loss.num_counted;
  return output;
}

std::vector<moe::FfnBlock*> FfnModel::ffn_blocks() {
  std::vector<moe::FfnBlock*> blocks;
  for (const std::unique_ptr<moe::FfnBlock>& ffn : ffns_) blocks.push_back(ffn.get());
  return blocks;
}

void FfnModel::visit(Visitor& visitor) {
  if (in_) visitor.module("in", *in_, "embedding");
  for (std::size_t i = 0; i < ffns_.size(); ++i) {
    const bool dense = ffns_[i]->num_experts() == 0;
    visitor.module(fmt::format("layers.{}.ffn", i), *ffns_[i], dense ? "dense_ffn" : "");
  }
  if (out_) visitor.module("out", *out_, "head");
}

}  // namespace moelab

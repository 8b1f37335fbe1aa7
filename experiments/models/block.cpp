#include "experiments/models/block.hpp"

#include "core/ops/dropout.hpp"
#include "core/ops/elementwise.hpp"

namespace moelab {

namespace {

SelfAttentionOptions named(SelfAttentionOptions attention, const std::string& block) {
  attention.name = block + ".attn";
  return attention;
}

}  // namespace

Block::Block(const BlockOptions& options, std::unique_ptr<moe::FfnBlock> ffn)
    : options_(options),
      norm1_(options.attention.d_model, options.norm),
      attn_(named(options.attention, options.name)),
      norm2_(options.attention.d_model, options.norm),
      ffn_(std::move(ffn)) {}

Variable Block::residual(const Variable& x, const Variable& y, const char* sublayer,
                         const ForwardContext& context) const {
  const std::string path = options_.name + sublayer;
  context.observe(path, y);
  Variable sum =
      !context.training || options_.dropout == 0
          ? ops::add(x, y)
          : ops::add(x, ops::dropout(y, options_.dropout, context.stream("dropout/" + path + ".output")));
  context.observe(path + ".residual", sum);
  return sum;
}

Variable Block::normalise(Norm& norm, const char* name, const Variable& x,
                          const ForwardContext& context) const {
  Variable y = norm.forward(x, context);
  context.observe(options_.name + name, y);
  return y;
}

moe::FfnOutput Block::forward(const Variable& x, const moe::TokenBatch& batch,
                              const ForwardContext& context) {
  const auto attend = [&](const Variable& h) {
    return attn_.forward(h, batch.seq_len, batch.is_real, context);
  };
  if (options_.pre_norm) {
    const Variable h = residual(x, attend(normalise(norm1_, ".norm1", x, context)), ".attn", context);
    moe::FfnOutput out = ffn_->forward(normalise(norm2_, ".norm2", h, context), batch, context);
    out.y = residual(h, out.y, ".ffn", context);
    return out;
  }
  const Variable h = normalise(norm1_, ".norm1", residual(x, attend(x), ".attn", context), context);
  moe::FfnOutput out = ffn_->forward(h, batch, context);
  out.y = normalise(norm2_, ".norm2", residual(h, out.y, ".ffn", context), context);
  return out;
}

void Block::visit(Visitor& visitor) {
  visitor.module("norm1", norm1_, "norm");
  visitor.module("attn", attn_, "attention");
  visitor.module("norm2", norm2_, "norm");
  // A mixture names the groups of its parts itself.
  visitor.module("ffn", *ffn_, ffn_->num_experts() == 0 ? "dense_ffn" : "");
}

}  // namespace moelab

#include "core/layers/attention.hpp"

#include "core/error.hpp"

namespace moelab {

namespace {

Index kv_width_of(const SelfAttentionOptions& o) {
  require(o.num_heads > 0 && o.d_model % o.num_heads == 0,
          "[attention] d_model={} is not divisible by num_heads={}", o.d_model, o.num_heads);
  require(o.num_kv_heads > 0 && o.num_heads % o.num_kv_heads == 0,
          "[attention] num_heads={} is not divisible by num_kv_heads={}", o.num_heads, o.num_kv_heads);
  return o.d_model / o.num_heads * o.num_kv_heads;
}

}  // namespace

SelfAttention::SelfAttention(const SelfAttentionOptions& options)
    : options_(options),
      kv_width_(kv_width_of(options)),
      q_(options.d_model, options.d_model, options.bias),
      k_(options.d_model, kv_width_, options.bias),
      v_(options.d_model, kv_width_, options.bias),
      o_(options.d_model, options.d_model, options.bias, residual_std(options.num_layers)) {}

Variable SelfAttention::forward(const Variable& x, Index seq_len, std::span<const std::uint8_t> is_real,
                                const ForwardContext& context) {
  ops::AttentionOptions attention{.num_heads = options_.num_heads,
                                  .num_kv_heads = options_.num_kv_heads,
                                  .causal = options_.causal,
                                  .rotary = options_.rotary};
  if (context.training && options_.dropout > 0) {
    attention.dropout = options_.dropout;
    attention.stream = context.stream("dropout/" + options_.name);
  }
  const Variable y = ops::attention(q_.forward(x, context), k_.forward(x, context), v_.forward(x, context),
                                    seq_len, is_real, attention);
  return o_.forward(y, context);
}

void SelfAttention::visit(Visitor& visitor) {
  q_.visit(visitor, "wq", "bq");
  k_.visit(visitor, "wk", "bk");
  v_.visit(visitor, "wv", "bv");
  o_.visit(visitor, "wo", "bo");
  visitor.attention(options_.d_model, kv_width_, options_.causal);
}

}  // namespace moelab

// Snowflake Arctic: mixtures every moe_layer_frequency layers; with parallel_attn_mlp_res such a layer also
// has a dense residual FFN, which is as wide as the hidden state, and a third norm.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_arctic(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {32000, 4096, 32, 32, {}, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", false);
  const bool residual = c.flag("parallel_attn_mlp_res", false);
  if (c.flag("use_residual", residual) != residual) c.error("use_residual and parallel_attn_mlp_res differ");
  const Index every = c.integer("moe_layer_frequency", 2);
  if (every == 0) c.error("moe_layer_frequency = 0: a positive number is wanted");
  MixtureShape m;
  m.d_model = s.d_model;
  m.layers = count_layers(s.layers, [&](Index i) { return (i + 1) % every == 0; });
  m.experts = c.integer("num_local_experts", 8);
  m.chosen = c.integer("num_experts_per_tok", 1);
  m.d_ff = c.integer("intermediate_size", 14336);
  c.neutral({"enable_expert_tensor_parallelism", "moe_eval_capacity_factor", "moe_min_capacity",
             "moe_token_dropping", "moe_train_capacity_factor", "quantization"});
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, m.d_ff, false, s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  if (residual) {
    add_gated_ffn(tally, "dense_ffn", s.d_model, s.d_model, false, m.layers);
    add_norms(tally, s.d_model, m.layers);
  }
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

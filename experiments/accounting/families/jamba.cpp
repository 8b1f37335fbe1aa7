// Jamba (Lieber et al. 2024): attention in the layers i with i % attn_layer_period == attn_layer_offset,
// Mamba in the others; mixtures by expert_layer_period and offset. The Mamba products are its four
// projections; the depthwise convolution and the scan are no matrix products.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

namespace {

void add_mamba(HfConfig& c, Tally& tally, Index layers, Index d_model) {
  const Index inner = c.integer("mamba_expand", 2) * d_model;
  const Index d_state = c.integer("mamba_d_state", 16);
  const Index d_conv = c.integer("mamba_d_conv", 4);
  const Index dt_rank = c.integer_or("mamba_dt_rank", "auto").value_or((d_model + 15) / 16);
  const bool conv_bias = c.flag("mamba_conv_bias", true);
  const bool proj_bias = c.flag("mamba_proj_bias", false);
  if (layers == 0) return;
  add_linear(tally, "mamba", 2 * inner, d_model, proj_bias, layers);        // in_proj
  add_linear(tally, "mamba", dt_rank + 2 * d_state, inner, false, layers);  // x_proj
  add_linear(tally, "mamba", inner, dt_rank, true, layers);                 // dt_proj
  add_linear(tally, "mamba", d_model, inner, proj_bias, layers);            // out_proj
  tally.parameters("mamba", sum_of({product_of({inner, d_conv}), conv_bias ? inner : 0}),
                   layers);                                                          // convolution
  tally.parameters("mamba", sum_of({product_of({inner, d_state}), inner}), layers);  // A_log and D
  add_norms(tally, dt_rank + 2 * d_state, layers);                                   // of dt, B and C
  tally.note("the state of Mamba layers does not grow with the context and is not in the KV cache");
}

}  // namespace

void describe_jamba(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {65536, 4096, 32, 32, 8, {}, false});
  const Index attention_period = c.integer("attn_layer_period", 8);
  const Index attention_offset = c.integer("attn_layer_offset", 4);
  const Index expert_period = c.integer("expert_layer_period", 2);
  const Index expert_offset = c.integer("expert_layer_offset", 1);
  if (attention_period == 0 || expert_period == 0)
    c.error("a layer period of 0: a positive number is wanted");
  AttentionShape attention = s.attention();
  attention.layers =
      count_layers(s.layers, [&](Index i) { return i % attention_period == attention_offset; });
  add_attention(tally, attention);
  add_mamba(c, tally, s.layers - attention.layers, s.d_model);
  MixtureShape m;
  m.d_model = s.d_model;
  m.experts = c.integer("num_experts", 16);
  m.chosen = c.integer("num_experts_per_tok", 2);
  m.d_ff = c.integer("intermediate_size", 14336);
  if (m.experts > 1) {  // with one expert the layers are built dense
    m.layers = count_layers(s.layers, [&](Index i) { return i % expert_period == expert_offset; });
    check_experts(c, m.experts, m.chosen);
  }
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, m.d_ff, false, s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
  c.only("mamba_inner_layernorms", true);
  c.neutral({"calc_logits_for_entire_prompt", "num_logits_to_keep", "use_mamba_kernels"});
}

}  // namespace moelab::families

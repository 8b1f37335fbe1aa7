// gpt-oss: biases on attention, router and experts, and a learned sink logit per head. layer_types alternates
// sliding and full attention, which changes no weight.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_gpt_oss(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {201088, 2880, 36, 64, 8, 64, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", true);
  attention.sinks = true;
  MixtureShape m;
  m.layers = s.layers;
  m.d_model = s.d_model;
  m.experts = c.integer("num_local_experts", c.integer("num_experts", 128));
  m.chosen = c.integer("num_experts_per_tok", c.integer("experts_per_token", 4));
  m.d_ff = c.integer("intermediate_size", 2880);
  m.bias = m.router_bias = true;
  if (c.integer("experts_per_token", m.chosen) != m.chosen) {
    c.error("num_experts_per_tok and experts_per_token differ");
  }
  c.neutral({"swiglu_limit", "initial_context_length"});
  check_experts(c, m.experts, m.chosen);
  check_layer_types(c, s.layers, {"full_attention", "sliding_attention"});
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

// Phi-3.5-MoE: LayerNorms with biases, and optional biases on the attention maps and on the head.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_phimoe(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {32064, 4096, 32, 32, 8, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", false);
  MixtureShape m;
  m.layers = s.layers;
  m.d_model = s.d_model;
  m.experts = c.integer("num_local_experts", 16);
  m.chosen = c.integer("num_experts_per_tok", 2);
  m.d_ff = c.integer("intermediate_size", 6400);
  c.neutral({"input_jitter_noise", "hidden_dropout"});
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_norms(tally, s.d_model, 2 * s.layers + 1, true);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied, c.flag("lm_head_bias", false));
}

}  // namespace moelab::families

// OLMoE (Muennighoff et al. 2024): norms over the full width of q and of k.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_olmoe(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {50304, 2048, 16, 16, {}, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", false);
  attention.qk_norm = AttentionShape::QkNorm::full_width;
  MixtureShape m;
  m.layers = s.layers;
  m.d_model = s.d_model;
  m.experts = c.integer("num_experts", 64);
  m.chosen = c.integer("num_experts_per_tok", 8);
  m.d_ff = c.integer("intermediate_size", 2048);
  c.neutral({"norm_topk_prob", "clip_qkv"});
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

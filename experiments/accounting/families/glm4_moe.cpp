// GLM-4.5: biases on q, k, v only, optional norms on the heads of q and k, a correction bias in the router.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_glm4_moe(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {151552, 4096, 46, 96, 8, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = c.flag("attention_bias", false);
  if (c.flag("use_qk_norm", false)) attention.qk_norm = AttentionShape::QkNorm::per_head;
  MixtureShape m;
  m.d_model = s.d_model;
  m.experts = c.integer("n_routed_experts", 128);
  m.chosen = c.integer("num_experts_per_tok", 8);
  m.d_ff = c.integer("moe_intermediate_size", 1408);
  m.shared_d_ff = c.integer("n_shared_experts", 1) * m.d_ff;
  m.correction_bias = true;
  const Index first = c.integer("first_k_dense_replace", 1);
  m.layers = count_layers(s.layers, [&](Index i) { return i >= first; });
  c.neutral(
      {"n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_method"});
  if (c.integer("num_nextn_predict_layers", 0) > 0)
    tally.note("multi-token-prediction layers are not counted");
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, c.integer("intermediate_size", 10944), false,
                s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

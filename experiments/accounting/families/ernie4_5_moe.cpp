// ERNIE 4.5 MoE: mixtures between two layers, at an interval; one correction bias per expert; use_bias puts
// biases on every map of attention and FFNs.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_ernie4_5_moe(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {103424, 2560, 28, 20, 4, {}, true});
  const bool bias = c.flag("use_bias", false);
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = bias;
  MixtureShape m;
  m.d_model = s.d_model;
  m.experts = c.integer("moe_num_experts", 64);
  m.chosen = c.integer("moe_k", 6);
  m.d_ff = c.integer("moe_intermediate_size", 1536);
  m.shared_d_ff = c.integer("moe_num_shared_experts", 2) * m.d_ff;
  m.bias = bias;
  m.correction_bias = true;
  const Index first = c.integer("moe_layer_start_index", 1);
  const Index given_last = c.signed_integer("moe_layer_end_index", -1);
  const Index last = given_last == -1 ? s.layers - 1 : given_last;
  const Index interval = c.integer("moe_layer_interval", 1);
  if (interval == 0) c.error("moe_layer_interval = 0: a positive number is wanted");
  m.layers =
      count_layers(s.layers, [&](Index i) { return (i + 1) % interval == 0 && i >= first && i <= last; });
  c.only("use_rmsnorm", true);
  c.neutral({"compression_ratio", "moe_capacity", "moe_gate", "moe_norm_min", "moe_use_aux_free"});
  if (c.integer("num_nextn_predict_layers", 0) > 0)
    tally.note("multi-token-prediction layers are not counted");
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, c.integer("intermediate_size", 12288), bias,
                s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

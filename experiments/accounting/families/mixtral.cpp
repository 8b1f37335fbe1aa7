// Mixtral (Jiang et al. 2024): every layer a mixture; intermediate_size is the width of an expert.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_mixtral(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {32000, 4096, 32, 32, 8, {}, false});
  c.only("attention_bias", false);
  MixtureShape m;
  m.layers = s.layers;
  m.d_model = s.d_model;
  m.experts = c.integer("num_local_experts", 8);
  m.chosen = c.integer("num_experts_per_tok", 2);
  m.d_ff = c.integer("intermediate_size", 14336);
  check_experts(c, m.experts, m.chosen);
  check_layer_types(c, s.layers, {"full_attention", "sliding_attention"});
  add_attention(tally, s.attention());
  add_mixture(tally, m);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

// Grok-1: gated experts, and a norm before and after each sub-layer.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_grok1(HfConfig& c, Tally& tally) {
  // The published config has every field; the config classes that are about have different defaults.
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "intermediate_size"}) {
    c.required_integer(key);
  }
  const DecoderShape s = read_decoder(c, {0, 0, 0, 0, {}, {}, true});
  MixtureShape m;
  m.layers = s.layers;
  m.d_model = s.d_model;
  m.experts = c.integer("num_experts", c.integer("num_local_experts", 8));
  m.chosen = c.integer("num_experts_per_tok", 2);
  m.d_ff = c.required_integer("intermediate_size");
  c.neutral(
      {"attn_output_multiplier", "embedding_multiplier_scale", "max_attn_value", "output_multiplier_scale"});
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, s.attention());
  add_mixture(tally, m);
  add_norms(tally, s.d_model, 4 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

// Llama 4, text: the sparse layers are every interleave_moe_layer_step-th; intermediate_size is the width of
// routed and shared experts, intermediate_size_mlp that of the dense layers. The norm on q and k has no
// weight.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

#include <algorithm>
#include <vector>

namespace moelab::families {

void describe_llama4_text(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {202048, 5120, 48, 40, 8, 128, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", false);
  MixtureShape m;
  m.d_model = s.d_model;
  m.experts = c.integer("num_local_experts", 16);
  m.chosen = c.integer("num_experts_per_tok", 1);
  m.d_ff = m.shared_d_ff = c.integer("intermediate_size", 8192);
  const Index step = c.integer("interleave_moe_layer_step", 1);
  if (c.has("moe_layers")) {
    const std::vector<Index> sparse = c.integers("moe_layers");
    m.layers = count_layers(
        s.layers, [&](Index i) { return std::find(sparse.begin(), sparse.end(), i) != sparse.end(); });
  } else {
    m.layers = count_layers(s.layers, [&](Index i) { return step > 0 && (i + 1) % step == 0; });
  }
  c.neutral({"attention_chunk_size", "attn_scale", "attn_temperature_tuning", "floor_scale",
             "for_llm_compressor", "moe_layers", "no_rope_layer_interval", "no_rope_layers", "use_qk_norm"});
  check_experts(c, m.experts, m.chosen);
  check_layer_types(c, s.layers, {"full_attention", "chunked_attention"});
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, c.integer("intermediate_size_mlp", 16384), false,
                s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace moelab::families

// Qwen1.5/2-MoE and Qwen3-MoE: a layer is a mixture when it is not in mlp_only_layers and (i + 1) is a
// multiple of decoder_sparse_step; the others are dense with intermediate_size. Qwen2-MoE always has biases
// on q, k, v and a sigmoid gate on its shared expert; Qwen3-MoE has a norm on each head of q and k, and no
// shared expert.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

#include <algorithm>
#include <vector>

namespace moelab::families {

namespace {

Index sparse_layers(HfConfig& c, Index layers, Index experts) {
  const Index step = c.integer("decoder_sparse_step", 1);
  const std::vector<Index> dense = c.integers("mlp_only_layers");
  if (step == 0) c.error("decoder_sparse_step = 0: a positive number is wanted");
  return count_layers(layers, [&](Index i) {
    return experts > 0 && (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  });
}

void describe_qwen_moe(HfConfig& c, Tally& tally, const DecoderShape& s, const AttentionShape& attention,
                       MixtureShape m, Index dense_d_ff) {
  m.d_model = s.d_model;
  m.layers = sparse_layers(c, s.layers, m.experts);
  if (m.layers > 0) check_experts(c, m.experts, m.chosen);
  check_layer_types(c, s.layers, {"full_attention", "sliding_attention"});
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, dense_d_ff, false, s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
}

}  // namespace

void describe_qwen2_moe(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {151936, 2048, 24, 16, 16, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = c.flag("qkv_bias", true);
  MixtureShape m;
  m.experts = c.integer("num_experts", 60);
  m.chosen = c.integer("num_experts_per_tok", 4);
  m.d_ff = c.integer("moe_intermediate_size", 1408);
  m.shared_d_ff = c.integer("shared_expert_intermediate_size", 5632);
  m.shared_gate = true;
  c.neutral({"norm_topk_prob"});
  describe_qwen_moe(c, tally, s, attention, m, c.integer("intermediate_size", 5632));
}

void describe_qwen3_moe(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {151936, 2048, 24, 32, 4, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", false);
  attention.qk_norm = AttentionShape::QkNorm::per_head;
  MixtureShape m;
  m.experts = c.integer("num_experts", 128);
  m.chosen = c.integer("num_experts_per_tok", 8);
  m.d_ff = c.integer("moe_intermediate_size", 768);
  c.neutral({"norm_topk_prob"});
  describe_qwen_moe(c, tally, s, attention, m, c.integer("intermediate_size", 6144));
}

}  // namespace moelab::families

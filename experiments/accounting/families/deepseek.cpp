// DeepSeekMoE (Dai et al. 2024), DeepSeek-V2 and V3, Kimi K2. Layer i is a mixture when i >=
// first_k_dense_replace and i is a multiple of moe_layer_freq. V2 and V3 have multi-head latent attention:
// queries and keys-values are made of low-rank latents, and num_key_value_heads has no meaning.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

#include <optional>

namespace moelab::families {

namespace {

DecoderShape read_latent_decoder(HfConfig& c, Index vocab, Index d_model, Index layers, Index heads) {
  DecoderShape s;
  s.vocab = c.integer("vocab_size", vocab);
  s.d_model = c.integer("hidden_size", d_model);
  s.layers = c.integer("num_hidden_layers", layers);
  s.heads = c.integer("num_attention_heads", heads);
  s.tied = c.flag("tie_word_embeddings", false);
  c.neutral({"num_key_value_heads", "head_dim"});
  if (s.vocab == 0 || s.d_model == 0 || s.layers == 0 || s.heads == 0) {
    c.error("vocab_size, hidden_size, num_hidden_layers and num_attention_heads must be positive");
  }
  return s;
}

void add_latent_attention(HfConfig& c, Tally& tally, const DecoderShape& s) {
  const bool direct_q = c.is_null("q_lora_rank");  // queries straight from the hidden state
  const Index q_rank = c.integer("q_lora_rank", 1536);
  const Index kv_rank = c.integer("kv_lora_rank", 512);
  const Index nope_dim = c.integer("qk_nope_head_dim", 128);
  const Index rope_dim = c.integer("qk_rope_head_dim", 64);
  const Index v_dim = c.integer("v_head_dim", 128);
  const bool bias = c.flag("attention_bias", false);
  c.neutral({"qk_head_dim", "rope_interleave"});
  const Index q_width = s.heads * (nope_dim + rope_dim);
  const Index v_width = s.heads * v_dim;
  if (!direct_q) {
    add_linear(tally, "attention", q_rank, s.d_model, bias, s.layers);
    add_norms(tally, q_rank, s.layers);
  }
  add_linear(tally, "attention", q_width, direct_q ? s.d_model : q_rank, false, s.layers);
  add_linear(tally, "attention", kv_rank + rope_dim, s.d_model, bias, s.layers);
  add_norms(tally, kv_rank, s.layers);
  add_linear(tally, "attention", s.heads * (nope_dim + v_dim), kv_rank, false, s.layers);
  add_linear(tally, "attention", s.d_model, v_width, bias, s.layers);
  tally.attention(q_width, v_width, true, s.layers);
  tally.kv_cache((kv_rank + rope_dim) * s.layers);
}

struct MixtureDefaults {
  std::optional<Index> experts, chosen, shared;  // none: no mixture unless the config says so
  Index d_ff = 0, first_dense = 0, dense_d_ff = 0;
  bool correction_bias = false;
};

void add_ffns(HfConfig& c, Tally& tally, const DecoderShape& s, const MixtureDefaults& defaults) {
  // null switches off what the default of the class would switch on.
  const auto read = [&c](const char* key, std::optional<Index> otherwise) {
    const std::optional<Index> given = c.integer(key);
    return given || c.is_null(key) ? given : otherwise;
  };
  MixtureShape m;
  m.d_model = s.d_model;
  const std::optional<Index> experts = read("n_routed_experts", defaults.experts);
  m.chosen = read("num_experts_per_tok", defaults.chosen).value_or(0);
  m.d_ff = c.integer("moe_intermediate_size", defaults.d_ff);
  m.shared_d_ff = read("n_shared_experts", defaults.shared).value_or(0) * m.d_ff;
  m.correction_bias = defaults.correction_bias;
  const Index first = c.integer("first_k_dense_replace", defaults.first_dense);
  const Index every = c.integer("moe_layer_freq", 1);
  if (every == 0) c.error("moe_layer_freq = 0: a positive number is wanted");
  if (experts) {
    m.experts = *experts;
    m.layers = count_layers(s.layers, [&](Index i) { return i >= first && i % every == 0; });
    check_experts(c, m.experts, m.chosen);
  }
  add_mixture(tally, m);
  add_gated_ffn(tally, "dense_ffn", s.d_model, c.integer("intermediate_size", defaults.dense_d_ff), false,
                s.layers - m.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
  c.neutral({"aux_loss_alpha", "ep_size", "n_group", "norm_topk_prob", "routed_scaling_factor",
             "scoring_func", "seq_aux", "topk_group", "topk_method"});
  if (c.integer("num_nextn_predict_layers", 0) > 0)
    tally.note("multi-token-prediction layers are not counted");
}

}  // namespace

void describe_deepseek(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_decoder(c, {102400, 4096, 30, 32, 32, {}, false});
  AttentionShape attention = s.attention();
  attention.qkv_bias = attention.out_bias = c.flag("attention_bias", false);
  add_attention(tally, attention);
  add_ffns(c, tally, s, {{}, {}, {}, 1407, 0, 11008, false});
}

void describe_deepseek_v2(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_latent_decoder(c, 102400, 4096, 30, 32);
  add_latent_attention(c, tally, s);
  add_ffns(c, tally, s, {{}, {}, {}, 1407, 0, 11008, c.text("topk_method", "greedy") == "noaux_tc"});
}

void describe_deepseek_v3(HfConfig& c, Tally& tally) {
  const DecoderShape s = read_latent_decoder(c, 129280, 7168, 61, 128);
  add_latent_attention(c, tally, s);
  add_ffns(c, tally, s, {256, 8, 1, 2048, 3, 18432, c.text("topk_method", "noaux_tc") == "noaux_tc"});
}

}  // namespace moelab::families

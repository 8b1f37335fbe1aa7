// DBRX: sizes of attention and FFN in nested objects; LayerNorms without biases; one q-k-v map.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_dbrx(HfConfig& c, Tally& tally) {
  HfConfig attn = c.object("attn_config");
  HfConfig ffn = c.object("ffn_config");
  AttentionShape attention;
  attention.layers = c.integer("n_layers", 24);
  attention.d_model = c.integer("d_model", 2048);
  attention.heads = c.integer("n_heads", 16);
  attention.kv_heads = attn.integer("kv_n_heads", 1);
  if (attention.layers == 0 || attention.heads == 0 || attention.kv_heads == 0 ||
      attention.d_model % attention.heads != 0 || attention.heads % attention.kv_heads != 0) {
    c.error(
        "n_layers and head counts must be positive, d_model a multiple of n_heads, and n_heads a multiple of "
        "kv_n_heads");
  }
  attention.head_dim = attention.d_model / attention.heads;
  MixtureShape m;
  m.layers = attention.layers;
  m.d_model = attention.d_model;
  m.experts = ffn.integer("moe_num_experts", 4);
  m.chosen = ffn.integer("moe_top_k", 1);
  m.d_ff = ffn.integer("ffn_hidden_size", 3584);
  check_experts(c, m.experts, m.chosen);
  add_attention(tally, attention);
  add_mixture(tally, m);
  add_norms(tally, m.d_model, 2 * m.layers + 1);
  c.only("tie_word_embeddings", false);
  add_embedding_and_head(tally, c.integer("vocab_size", 32000), m.d_model, false);
  attn.neutral({"attn_pdrop", "clip_qkv", "rope_theta"});
  ffn.neutral({"ffn_act_fn", "moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights",
               "uniform_expert_assignment"});
  c.neutral({"emb_pdrop", "max_seq_len"});
  attn.finish();
  ffn.finish();
}

}  // namespace moelab::families

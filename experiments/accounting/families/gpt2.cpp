// GPT-2: learned positions, biases everywhere, LayerNorms with biases, the head tied to the token table.
#include "core/error.hpp"
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_gpt2(HfConfig& c, Tally& tally) {
  AttentionShape attention;
  attention.layers = c.integer("n_layer", 12);
  attention.d_model = c.integer("n_embd", 768);
  attention.heads = attention.kv_heads = c.integer("n_head", 12);
  if (attention.heads == 0 || attention.d_model % attention.heads != 0) {
    c.error(fmt::format("n_embd = {} is not a multiple of n_head = {}", attention.d_model, attention.heads));
  }
  attention.head_dim = attention.d_model / attention.heads;
  attention.qkv_bias = attention.out_bias = true;
  const Index d_ff = c.integer("n_inner").value_or(4 * attention.d_model);
  const Index positions = c.integer("n_positions", c.integer("n_ctx", 1024));
  c.only("add_cross_attention", false);
  c.neutral({"activation_function", "attn_pdrop", "embd_pdrop", "n_ctx", "reorder_and_upcast_attn",
             "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "summary_activation",
             "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  add_attention(tally, attention);
  add_plain_ffn(tally, "dense_ffn", attention.d_model, d_ff, true, attention.layers);
  add_norms(tally, attention.d_model, 2 * attention.layers + 1, true);
  tally.parameters("embedding", positions * attention.d_model, 1, {}, TableRole::position_table);
  add_embedding_and_head(tally, c.integer("vocab_size", 50257), attention.d_model,
                         c.flag("tie_word_embeddings", true));
}

}  // namespace moelab::families

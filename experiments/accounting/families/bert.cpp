// BERT: bidirectional, post-norm, learned positions and segment types. Counted without a language-model head,
// with the pooler, which runs once a sequence and so is no product of a token.
#include "core/error.hpp"
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

void describe_bert(HfConfig& c, Tally& tally) {
  AttentionShape attention;
  attention.layers = c.integer("num_hidden_layers", 12);
  attention.d_model = c.integer("hidden_size", 768);
  attention.heads = attention.kv_heads = c.integer("num_attention_heads", 12);
  if (attention.heads == 0 || attention.d_model % attention.heads != 0) {
    c.error(fmt::format("hidden_size = {} is not a multiple of num_attention_heads = {}", attention.d_model,
                        attention.heads));
  }
  attention.head_dim = attention.d_model / attention.heads;
  attention.qkv_bias = attention.out_bias = true;
  attention.causal = false;
  const Index d = attention.d_model;
  const Index vocab = c.integer("vocab_size", 30522);
  const Index positions = c.integer("max_position_embeddings", 512);
  const Index types = c.integer("type_vocab_size", 2);
  if (c.text("position_embedding_type", "absolute") != "absolute") {
    c.error("position_embedding_type other than 'absolute' adds weights that are not modelled");
  }
  c.only("add_cross_attention", false);
  c.only("is_decoder", false);
  c.only("tie_word_embeddings", true);
  c.neutral({"attention_probs_dropout_prob", "directionality", "hidden_dropout_prob", "pooler_fc_size",
             "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"});
  add_attention(tally, attention);
  add_plain_ffn(tally, "dense_ffn", d, c.integer("intermediate_size", 3072), true, attention.layers);
  add_norms(tally, d, 2 * attention.layers + 1, true);
  tally.parameters("embedding", vocab * d, 1, {}, TableRole::input_table);
  tally.parameters("embedding", (positions + types) * d, 1, {}, TableRole::position_table);
  tally.tied();
  tally.parameters("head", d * d + d);  // pooler
  // The reference figures take all three tables as the tied output product.
  tally.product("head", vocab + positions + types, d);
  tally.note(
      "the output product is that of the tied tables of tokens, positions and types together; the pooler "
      "runs once a sequence and is no product of a token");
}

}  // namespace moelab::families

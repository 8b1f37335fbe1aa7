// T5 (Raffel et al. 2020) and Switch Transformers (Fedus et al. 2021): an encoder and a decoder stack, RMS
// norms, a table of relative positions in the first layer of each stack. What a token costs is the sum of
// both stacks: one source and one target token.
#include "core/error.hpp"
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

#include <string>

namespace moelab::families {

namespace {

struct Stacks {
  Index d_model, inner, heads, buckets, encoder_layers, decoder_layers;
  bool tied;
};

Stacks read_stacks(HfConfig& c, Index d_model, Index layers, Index heads) {
  Stacks s{};
  s.d_model = c.integer("d_model", d_model);
  s.heads = c.integer("num_heads", heads);
  s.inner = s.heads * c.integer("d_kv", 64);
  s.buckets = c.integer("relative_attention_num_buckets", 32);
  s.encoder_layers = c.integer("num_layers", layers);
  s.decoder_layers = c.integer("num_decoder_layers", s.encoder_layers);
  s.tied = c.flag("tie_word_embeddings", true);
  c.only("is_encoder_decoder", true);
  c.only("tie_encoder_decoder", false);
  c.neutral({"dense_act_fn", "dropout_rate", "n_positions", "relative_attention_max_distance"});
  return s;
}

// Self-attention of both stacks, cross-attention, norms, positions, embeddings and head: all but the FFNs.
void add_stacks(HfConfig& c, Tally& tally, const Stacks& s) {
  const Index attentions = s.encoder_layers + 2 * s.decoder_layers;
  add_linear(tally, "attention", s.inner, s.d_model, false, 3 * attentions);
  add_linear(tally, "attention", s.d_model, s.inner, false, attentions);
  tally.parameters("attention", s.buckets * s.heads, 2);
  add_norms(tally, s.d_model, 2 * s.encoder_layers + 3 * s.decoder_layers + 2);
  add_embedding_and_head(tally, c.integer("vocab_size", 32128), s.d_model, s.tied);
  tally.kv_cache(product_of({2, s.inner, s.decoder_layers}));
  tally.attention_undefined();
  tally.note(
      "an encoder-decoder model: a token is one source and one target token; attention FLOPs depend on both "
      "lengths and are not given; the KV cache is that of the decoder's self-attention");
}

}  // namespace

void describe_t5(HfConfig& c, Tally& tally) {
  const Stacks s = read_stacks(c, 512, 6, 8);
  const std::string projection = c.text("feed_forward_proj", "relu");
  const bool gated = projection.rfind("gated-", 0) == 0;
  if (c.flag("is_gated_act", gated) != gated) {
    c.error(fmt::format("is_gated_act contradicts feed_forward_proj = '{}'", projection));
  }
  const Index d_ff = c.integer("d_ff", 2048);
  const auto add_ffn = gated ? add_gated_ffn : add_plain_ffn;
  add_ffn(tally, "dense_ffn", s.d_model, d_ff, false, s.encoder_layers + s.decoder_layers, {});
  add_stacks(c, tally, s);
}

void describe_switch_transformers(HfConfig& c, Tally& tally) {
  const Stacks s = read_stacks(c, 768, 12, 12);
  const auto sparse_of = [&c](Index layers, Index sparse, const char* key) {
    if (sparse == 0 || sparse > layers) {
      c.error(fmt::format("{} = {} of {} layers: from 1 to the number of layers is modelled", key, sparse,
                          layers));
    }
    const Index step = layers / sparse;
    return count_layers(layers, [step](Index i) { return step == 1 || i % step == 1; });
  };
  const Index sparse =
      sparse_of(s.encoder_layers, c.integer("num_sparse_encoder_layers", 3), "num_sparse_encoder_layers") +
      sparse_of(s.decoder_layers, c.integer("num_sparse_decoder_layers", 3), "num_sparse_decoder_layers");
  const Index experts = c.integer("num_experts", 8);
  const Index d_ff = c.integer("d_ff", 2048);
  check_experts(c, experts, 1);
  c.only("is_gated_act", false);
  if (c.text("feed_forward_proj", "relu").rfind("gated-", 0) == 0) {
    c.error("a gated feed_forward_proj is not built by this model type");
  }
  if (c.integer("num_selected_experts", 1) != 1) c.error("num_selected_experts other than 1 is not modelled");
  c.neutral({"add_router_probs", "encoder_sparse_step", "decoder_sparse_step", "expert_capacity",
             "router_dtype", "router_ignore_padding_tokens", "router_type", "router_z_loss_coef"});
  add_linear(tally, "router", experts, s.d_model, c.flag("router_bias", false), sparse);
  add_plain_ffn(tally, "experts", s.d_model, d_ff, false, experts * sparse, {1, experts});
  add_plain_ffn(tally, "dense_ffn", s.d_model, d_ff, false, s.encoder_layers + s.decoder_layers - sparse);
  add_stacks(c, tally, s);
}

}  // namespace moelab::families

#include "experiments/accounting/parts.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace moelab {

void add_linear(Tally& tally, std::string_view group, Index out, Index in, bool bias, Index copies,
                Share active) {
  tally.parameters(group, sum_of({product_of({out, in}), bias ? out : 0}), copies, active);
  tally.product(group, out, in, copies, active);
}

void add_norms(Tally& tally, Index width, Index copies, bool bias) {
  tally.parameters("norm", bias ? 2 * width : width, copies);
}

void add_plain_ffn(Tally& tally, std::string_view group, Index d_model, Index d_ff, bool bias, Index copies,
                   Share active) {
  add_linear(tally, group, d_ff, d_model, bias, copies, active);
  add_linear(tally, group, d_model, d_ff, bias, copies, active);
}

void add_gated_ffn(Tally& tally, std::string_view group, Index d_model, Index d_ff, bool bias, Index copies,
                   Share active) {
  add_linear(tally, group, d_ff, d_model, bias, 2 * copies, active);
  add_linear(tally, group, d_model, d_ff, bias, copies, active);
}

void add_embedding_and_head(Tally& tally, Index vocab, Index d_model, bool tied, bool head_bias) {
  tally.parameters("embedding", product_of({vocab, d_model}), 1, {}, TableRole::input_table);
  if (tied) {
    tally.tied();
  } else {
    tally.parameters("head", product_of({vocab, d_model}), 1, {}, TableRole::head);
  }
  if (head_bias) tally.parameters("head", vocab);
  tally.product("head", vocab, d_model);
}

void add_attention(Tally& tally, const AttentionShape& s) {
  const Index q_width = s.heads * s.head_dim;
  const Index kv_width = s.kv_heads * s.head_dim;
  add_linear(tally, "attention", q_width, s.d_model, s.qkv_bias, s.layers);
  add_linear(tally, "attention", kv_width, s.d_model, s.qkv_bias, 2 * s.layers);
  add_linear(tally, "attention", s.d_model, q_width, s.out_bias, s.layers);
  if (s.sinks) tally.parameters("attention", s.heads, s.layers);
  if (s.qk_norm == AttentionShape::QkNorm::per_head) add_norms(tally, s.head_dim, 2 * s.layers);
  if (s.qk_norm == AttentionShape::QkNorm::full_width) {
    add_norms(tally, q_width, s.layers);
    add_norms(tally, kv_width, s.layers);
  }
  tally.attention(q_width, q_width, s.causal, s.layers);
  if (s.causal) tally.kv_cache(product_of({2, kv_width, s.layers}));
}

void add_mixture(Tally& tally, const MixtureShape& s) {
  if (s.layers == 0) return;
  add_linear(tally, "router", s.experts, s.d_model, s.router_bias, s.layers);
  if (s.correction_bias) tally.parameters("router", s.experts, s.layers);
  add_gated_ffn(tally, "experts", s.d_model, s.d_ff, s.bias, s.experts * s.layers, {s.chosen, s.experts});
  if (s.shared_d_ff == 0) return;
  add_gated_ffn(tally, "shared_experts", s.d_model, s.shared_d_ff, s.bias, s.layers);
  if (s.shared_gate) add_linear(tally, "shared_experts", 1, s.d_model, false, s.layers);
}

AttentionShape DecoderShape::attention() const {
  AttentionShape s;
  s.layers = layers;
  s.d_model = d_model;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.head_dim = head_dim;
  return s;
}

DecoderShape read_decoder(HfConfig& c, const DecoderDefaults& defaults) {
  DecoderShape s;
  s.vocab = c.integer("vocab_size", defaults.vocab);
  s.d_model = c.integer("hidden_size", defaults.d_model);
  s.layers = c.integer("num_hidden_layers", defaults.layers);
  s.heads = c.integer("num_attention_heads", defaults.heads);
  // A default of the class holds for a missing field; null means "as many as heads".
  const bool as_many = c.is_null("num_key_value_heads") || !defaults.kv_heads;
  s.kv_heads = c.integer("num_key_value_heads", as_many ? s.heads : *defaults.kv_heads);
  if (s.vocab == 0 || s.d_model == 0 || s.layers == 0 || s.heads == 0 || s.kv_heads == 0) {
    c.error("vocab_size, hidden_size, num_hidden_layers and the numbers of heads must be positive");
  }
  if (s.heads % s.kv_heads != 0) {
    c.error(fmt::format("num_attention_heads = {} is not a multiple of num_key_value_heads = {}", s.heads,
                        s.kv_heads));
  }
  if (const std::optional<Index> given = c.integer("head_dim")) {
    s.head_dim = *given;
  } else if (defaults.head_dim) {
    s.head_dim = *defaults.head_dim;
  } else {
    if (s.d_model % s.heads != 0) {
      c.error(
          fmt::format("hidden_size = {} is not a multiple of num_attention_heads = {}, and head_dim is not "
                      "given",
                      s.d_model, s.heads));
    }
    s.head_dim = s.d_model / s.heads;
  }
  s.tied = c.flag("tie_word_embeddings", defaults.tied);
  return s;
}

Index count_layers(Index layers, const std::function<bool(Index)>& is_chosen) {
  Index count = 0;
  for (Index i = 0; i < layers; ++i) count += is_chosen(i) ? 1 : 0;
  return count;
}

void check_experts(const HfConfig& config, Index experts, Index chosen) {
  if (experts < 1 || chosen < 1 || chosen > experts) {
    config.error(fmt::format("{} experts a token of {} experts: 1 <= k <= E is wanted", chosen, experts));
  }
}

void check_layer_types(HfConfig& config, Index layers, std::initializer_list<std::string_view> known) {
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.empty()) return;
  if (static_cast<Index>(types.size()) != layers) {
    config.error(fmt::format("layer_types has {} entries for {} layers", types.size(), layers));
  }
  for (const std::string& type : types) {
    if (std::find(known.begin(), known.end(), type) == known.end()) {
      config.error(fmt::format("layer_types holds '{}', which is not modelled for this model type; known: {}",
                               type, fmt::join(known, ", ")));
    }
  }
}

}  // namespace moelab

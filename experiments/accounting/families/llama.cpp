// Dense Llama-like decoders: llama, mistral, qwen2, gemma. They differ in defaults and biases alone.
#include "experiments/accounting/families/families.hpp"
#include "experiments/accounting/parts.hpp"

namespace moelab::families {

namespace {

struct Biases {
  bool qkv = false, out = false, ffn = false;
};

void describe_dense(HfConfig& c, Tally& tally, const DecoderDefaults& defaults, Index default_d_ff,
                    Biases biases) {
  const DecoderShape s = read_decoder(c, defaults);
  AttentionShape attention = s.attention();
  attention.qkv_bias = biases.qkv;
  attention.out_bias = biases.out;
  add_attention(tally, attention);
  const Index d_ff = c.integer("intermediate_size", default_d_ff);
  add_gated_ffn(tally, "dense_ffn", s.d_model, d_ff, biases.ffn, s.layers);
  add_norms(tally, s.d_model, 2 * s.layers + 1);
  add_embedding_and_head(tally, s.vocab, s.d_model, s.tied);
  check_layer_types(c, s.layers, {"full_attention", "sliding_attention"});
}

}  // namespace

void describe_llama(HfConfig& c, Tally& tally) {
  const bool bias = c.flag("attention_bias", false);
  describe_dense(c, tally, {32000, 4096, 32, 32, {}, {}, false}, 11008,
                 {bias, bias, c.flag("mlp_bias", false)});
}

void describe_mistral(HfConfig& c, Tally& tally) {
  c.only("attention_bias", false);
  describe_dense(c, tally, {32000, 4096, 32, 32, 8, {}, false}, 14336, {});
}

void describe_qwen2(HfConfig& c, Tally& tally) {
  c.only("attention_bias", true);
  c.neutral({"use_mrope"});
  describe_dense(c, tally, {151936, 4096, 32, 32, 32, {}, false}, 22016, {true, false, false});
}

void describe_gemma(HfConfig& c, Tally& tally) {
  const bool bias = c.flag("attention_bias", false);
  c.neutral({"hidden_activation"});
  describe_dense(c, tally, {256000, 3072, 28, 16, 16, 256, true}, 24576, {bias, bias, false});
}

}  // namespace moelab::families

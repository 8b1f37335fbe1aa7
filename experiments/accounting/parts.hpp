// Parts that published architectures are built of. Each adds its parameters and products to a Tally.
#pragma once

#include "experiments/accounting/accounting.hpp"
#include "experiments/accounting/hf_config.hpp"

#include <functional>
#include <optional>
#include <string_view>

namespace moelab {

// `copies` weights (out, in), with biases (out), each executed for a share of the tokens.
void add_linear(Tally& tally, std::string_view group, Index out, Index in, bool bias, Index copies = 1,
                Share active = {});
// `copies` norms of a width.
void add_norms(Tally& tally, Index width, Index copies, bool bias = false);
// W2 act(W1 x), and the gated W2 (act(W1 x) * (W3 x)).
void add_plain_ffn(Tally& tally, std::string_view group, Index d_model, Index d_ff, bool bias,
                   Index copies = 1, Share active = {});
void add_gated_ffn(Tally& tally, std::string_view group, Index d_model, Index d_ff, bool bias,
                   Index copies = 1, Share active = {});
// A token table, and the head that maps back to the vocabulary: with the table's weight where tied.
void add_embedding_and_head(Tally& tally, Index vocab, Index d_model, bool tied, bool head_bias = false);

struct AttentionShape {
  Index layers = 0, d_model = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool qkv_bias = false, out_bias = false;
  enum class QkNorm { none, per_head, full_width } qk_norm = QkNorm::none;
  bool sinks = false;  // a learned logit per head that takes part in the softmax
  bool causal = true;
};
// Grouped-query self-attention of `layers` layers.
void add_attention(Tally& tally, const AttentionShape& shape);

struct MixtureShape {
  Index layers = 0, d_model = 0, experts = 0, chosen = 0, d_ff = 0;
  Index shared_d_ff = 0;         // width of all shared experts of a layer together; 0: none
  bool bias = false;             // on the maps of the experts
  bool router_bias = false;      // on the router's map
  bool correction_bias = false;  // added to the scores for the choice only
  bool shared_gate = false;      // sigmoid(x . gate) times the shared experts
};
// Routed gated FFNs in `layers` layers.
void add_mixture(Tally& tally, const MixtureShape& shape);

// What nearly every decoder's config says, under the same names.
struct DecoderShape {
  Index vocab = 0, d_model = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool tied = false;
  AttentionShape attention() const;  // without biases, in all layers
};
struct DecoderDefaults {
  Index vocab = 0, d_model = 0, layers = 0, heads = 0;
  std::optional<Index> kv_heads;  // none: as many as heads
  std::optional<Index> head_dim;  // none: d_model / heads
  bool tied = false;
};
DecoderShape read_decoder(HfConfig& config, const DecoderDefaults& defaults);

// Layers in [0, layers) that `is_chosen` holds for.
Index count_layers(Index layers, const std::function<bool(Index)>& is_chosen);
// Checks k <= E and both positive, and that `layer_types` has one of `known` for each layer.
void check_experts(const HfConfig& config, Index experts, Index chosen);
void check_layer_types(HfConfig& config, Index layers, std::initializer_list<std::string_view> known);

}  // namespace moelab

#include "experiments/config/model_config.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moelab {

namespace {

constexpr Index kMaxLayers = 10'000;

// Experts of all layers together, shared ones included.
Index all_experts(const ModelConfig& c) {
  Index sum = 0;
  for (Index layer = 0; layer < c.num_layers; ++layer) {
    const moe::FfnConfig& ffn = c.ffn_of(layer);
    if (ffn.kind == "moe") sum += ffn.moe.num_experts() + (ffn.moe.shared ? ffn.moe.shared->count : 0);
  }
  return sum;
}

FieldInfo probability(std::string help) {
  return {.help = std::move(help), .min = 0, .max = 1, .max_exclusive = true};
}

void attention_fields(FieldVisitor& v, ModelConfig& c) {
  v("num_heads", c.num_heads, {.help = "Attention heads; they share d_model evenly", .min = 1});
  v("num_kv_heads", c.num_kv_heads,
    {.help = "Key-value heads; fewer than num_heads: grouped-query attention",
     .min = 1,
     .when_absent = "num_heads"});
  v("attention_bias", c.attention_bias, {.help = "Bias on the maps of attention"});
  v("norm", c.norm, {.help = "Normalisation: RMSNorm or LayerNorm", .choices = {"rms", "layer"}});
  v("norm_position", c.norm_position,
    {.help =
         "Before each sub-layer, with a final norm, or after its residual sum as in the original Transformer",
     .choices = {"pre", "post"}});
  v("norm_eps", c.norm_eps, {.help = "Epsilon of the norms", .min = 0, .min_exclusive = true});
  v("epsilon_outside", c.epsilon_outside,
    {.help = "LayerNorm that divides by the standard deviation + eps instead of sqrt(variance + eps)"});
  v("position", c.position,
    {.help = "How positions are told apart", .choices = {"rope", "learned", "sinusoidal", "none"}});
  v("rope_theta", c.rope_theta, {.help = "Base of the RoPE wavelengths", .min = 1});
  v("tie_embeddings", c.tie_embeddings, {.help = "The output head uses the embedding matrix"});

  v.check(!c.epsilon_outside || c.norm == "layer", "epsilon_outside",
          "only LayerNorm (`norm: layer`) has it");
  v.check(c.num_heads >= 1 && c.d_model % c.num_heads == 0, "d_model",
          fmt::format("{} is not divisible by num_heads {}", c.d_model, c.num_heads));
  v.check(c.kv_heads() >= 1 && c.num_heads % c.kv_heads() == 0, "num_kv_heads",
          fmt::format("num_heads {} is not divisible by num_kv_heads {}", c.num_heads, c.kv_heads()));
  v.check(c.position != "rope" || (c.d_model / std::max<Index>(c.num_heads, 1)) % 2 == 0, "position",
          fmt::format("rope turns pairs of features: the head width {} must be even",
                      c.d_model / std::max<Index>(c.num_heads, 1)));
}

}  // namespace

void LayerOverride::fields(FieldVisitor& v) {
  v("at", at, {.help = "Layers, from 0; negative: from the end"});
  v("every", every, {.help = "Every so many layers, from `offset`", .min = 1});
  v("offset", offset, {.help = "First layer of `every`", .min = 0});
  v("ffn", ffn, {.help = "The FFN of these layers", .required = true});
  v.check(at.empty() == every.has_value(), "", "give `at` or `every`, and not both");
}

bool LayerOverride::applies_to(Index layer, Index num_layers) const {
  if (every) return layer >= offset && (layer - offset) % *every == 0;
  return std::any_of(at.begin(), at.end(), [&](Index i) { return (i < 0 ? i + num_layers : i) == layer; });
}

void InitConfig::fields(FieldVisitor& v) {
  v("upcycle", upcycle,
    {.help = "Checkpoint of a dense model that the experts and all else are copied from: a file, or a folder "
             "of checkpoints, whose newest counts; a relative path starts at the folder of this YAML file",
     .required = true,
     .shorthand = true});
  v("noise", noise,
    {.help = "Deviation of the noise added to each matrix of each expert, relative to the matrix's own",
     .min = 0});
}

void ModelConfig::fields(FieldVisitor& v) {
  v.kind(kind, {.help = "decoder: causal Transformer; encoder: bidirectional; ffn: FFNs alone, on features",
                .choices = {"decoder", "encoder", "ffn"}});
  v("d_model", d_model, {.help = "Width of the hidden state", .min = 1, .max = 1e6});
  v("num_layers", num_layers, {.help = "Blocks, one after the other", .min = 1, .max = kMaxLayers});
  if (kind == "ffn") {
    v("residual", residual, {.help = "x + FFN(x) instead of FFN(x)"});
  } else {
    attention_fields(v, *this);
    v("dropout", dropout, probability("Dropout of sub-layer outputs and attention weights, in training"));
  }
  if (kind == "encoder") {
    v("mask_fraction", mask_fraction,
      {.help = "Share of the tokens that are masked and to be filled in",
       .min = 0,
       .max = 1,
       .min_exclusive = true});
  }
  v("ffn", ffn, {.help = "The FFN of every layer", .required = true});
  v("layers", layers, {.help = "Other FFNs at some layers; the last that names a layer counts"});
  v("init", init, {.help = "Initial weights from a trained model", .when_absent = "drawn from the seed"});
  v.check(all_experts(*this) <= moe::kMaxExperts, "num_layers",
          fmt::format("{} layers have {} experts in all; at most {} are possible", num_layers,
                      all_experts(*this), moe::kMaxExperts));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    v.check(!layers[i].every || layers[i].offset < num_layers, fmt::format("layers[{}].offset", i),
            fmt::format("there is no layer {} among {}", layers[i].offset, num_layers));
    for (const Index layer : layers[i].at) {
      v.check(layer >= -num_layers && layer < num_layers, fmt::format("layers[{}].at", i),
              fmt::format("there is no layer {} among {}", layer, num_layers));
    }
  }
}

const moe::FfnConfig& ModelConfig::ffn_of(Index layer) const {
  for (auto it = layers.rbegin(); it != layers.rend(); ++it) {
    if (it->applies_to(layer, num_layers)) return it->ffn;
  }
  return ffn;
}

}  // namespace moelab

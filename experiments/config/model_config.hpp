// The `model:` block of an experiment.
#pragma once

#include "core/fields.hpp"
#include "core/tensor.hpp"
#include "moe/config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab {

// Another FFN at some layers: those listed in `at` (negative: from the end), or every `every`-th from
// `offset`.
struct LayerOverride {
  std::vector<Index> at;
  std::optional<Index> every;
  Index offset = 0;
  moe::FfnConfig ffn;
  void fields(FieldVisitor& v);
  bool applies_to(Index layer, Index num_layers) const;
};

// Where the initial weights come from, if not from a seed.
struct InitConfig {
  std::string upcycle;  // a dense checkpoint; relative to the folder of the experiment file
  double noise = 0;
  void fields(FieldVisitor& v);
};

struct ModelConfig {
  std::string kind = "decoder";  // decoder | encoder | ffn
  Index d_model = 128;
  Index num_layers = 4;
  moe::FfnConfig ffn;
  std::vector<LayerOverride> layers;  // the last that applies to a layer counts
  double dropout = 0.0;               // on sub-layer outputs and attention weights

  // decoder, encoder
  Index num_heads = 4;
  std::optional<Index> num_kv_heads;  // absent: num_heads
  std::string norm = "rms";           // rms | layer
  std::string norm_position = "pre";  // pre | post
  double norm_eps = 1e-5;
  bool epsilon_outside = false;   // layer: divide by std + eps instead of sqrt(var + eps)
  std::string position = "rope";  // rope | learned | sinusoidal | none
  double rope_theta = 10000;
  bool tie_embeddings = true;
  bool attention_bias = false;

  // encoder on text: bidirectional, learns to fill in masked tokens
  double mask_fraction = 0.15;

  // ffn: num_layers FFNs in a row, from features to targets of width d_model
  bool residual = false;  // x + FFN(x) instead of FFN(x)

  std::optional<InitConfig> init;

  void fields(FieldVisitor& v);
  Index kv_heads() const { return num_kv_heads.value_or(num_heads); }
  // The FFN of a layer, overrides applied.
  const moe::FfnConfig& ffn_of(Index layer) const;
};

}  // namespace moelab

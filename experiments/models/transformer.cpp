#include "experiments/models/transformer.hpp"

#include "core/ops/elementwise.hpp"

#include <cmath>

namespace moelab {

Transformer::Transformer(const ModelConfig& config, const TransformerShape& shape)
    : embed_(shape.num_tokens, config.d_model),
      stack_(config, shape.seq_len, shape.causal),
      head_(config.d_model, shape.num_tokens, config.tie_embeddings ? &embed_ : nullptr) {
  // Vaswani et al. 2017, section 3.4: else the small initial embeddings drown in the sinusoids.
  if (config.position == "sinusoidal") embedding_scale_ = std::sqrt(static_cast<double>(config.d_model));
}

Transformer::Output Transformer::forward(const moe::TokenBatch& batch, const ForwardContext& context) {
  Variable x = embed_.forward(batch.ids, context);
  if (embedding_scale_ != 1) x = ops::scale(x, embedding_scale_);
  Stack::Output hidden = stack_.forward(std::move(x), batch, context);
  Output output{head_.forward(hidden.x, context), std::move(hidden.ffn)};
  context.observe("head", output.logits);
  return output;
}

void Transformer::visit(Visitor& visitor) {
  visitor.module("embed", embed_, "embedding");
  stack_.visit(visitor);
  visitor.module("head", head_, "head");
}

}  // namespace moelab

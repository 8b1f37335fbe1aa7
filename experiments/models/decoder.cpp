#include "experiments/models/decoder.hpp"

#include "core/ops/loss.hpp"

namespace moelab {

namespace {

moe::TokenBatch tokens_of(const Batch& batch) {
  return {batch.num_sequences, batch.seq_len, batch.inputs, batch.is_real};
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, Index vocab_size, Index seq_len)
    : transformer_(config, {.num_tokens = vocab_size, .seq_len = seq_len, .causal = true}) {}

Variable Decoder::logits(const Batch& batch, const ForwardContext& context) {
  return transformer_.forward(tokens_of(batch), context).logits;
}

ModelOutput Decoder::forward(const Batch& batch, const ForwardContext& context) {
  Transformer::Output output = transformer_.forward(tokens_of(batch), context);
  ops::TaskLoss loss = ops::cross_entropy(output.logits, batch.targets, kIgnoredTarget);
  return {std::move(loss.mean), std::move(loss.rows), loss.num_counted, std::move(output.ffn)};
}

}  // namespace moelab

#include "experiments/models/encoder.hpp"

#include "core/ops/loss.hpp"

#include <string>

namespace moelab {

namespace {

// Where the numbers of a sequence start, in evaluation: a function of its tokens (FNV-1a).
std::uint64_t hash_of(std::span<const std::int32_t> ids) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::int32_t id : ids) hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

Encoder::Encoder(const ModelConfig& config, Index vocab_size, Index seq_len)
    : mask_fraction_(config.mask_fraction),
      mask_token_(static_cast<std::int32_t>(vocab_size)),
      transformer_(config, {.num_tokens = vocab_size + 1, .seq_len = seq_len, .causal = false}) {}

ModelOutput Encoder::forward(const Batch& batch, const ForwardContext& context) {
  std::vector<std::int32_t> inputs = batch.inputs;
  std::vector<std::int32_t> targets(inputs.size(), kIgnoredTarget);
  const random::Stream stream =
      context.training ? context.stream("mask") : random::Stream(0, "evaluation mask");
  const auto seq_len = static_cast<std::size_t>(batch.seq_len);
  for (std::size_t begin = 0; begin < inputs.size(); begin += seq_len) {
    const std::span<const std::int32_t> sequence(batch.inputs.data() + begin, seq_len);
    const std::uint64_t first = context.training ? begin : hash_of(sequence);
    for (std::size_t t = 0; t < seq_len; ++t) {
      const std::size_t n = begin + t;
      if (!batch.is_real.empty() && batch.is_real[n] == 0) continue;
      if (stream.uniform(first + t) >= mask_fraction_) continue;
      targets[n] = inputs[n];
      inputs[n] = mask_token_;
    }
  }
  Transformer::Output output =
      transformer_.forward({batch.num_sequences, batch.seq_len, inputs, batch.is_real}, context);
  ops::TaskLoss loss = ops::cross_entropy(output.logits, targets, kIgnoredTarget);
  return {.loss = std::move(loss.mean),
          .target_losses = std::move(loss.rows),
          .num_counted = loss.num_counted,
          .ffn = std::move(output.ffn),
          .targets_are_inputs = true};
}

}  // namespace moelab

#include "experiments/models/classifier.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/loss.hpp"
#include "core/ops/matmul.hpp"

#include <cmath>

namespace moelab {

namespace {

// (B T, d) -> (B, d), the mean of the T rows of each sequence.
Variable mean_of_sequences(const Variable& x, Index num_sequences, Index seq_len) {
  std::vector<Index> sequence_of;
  for (Index n = 0; n < num_sequences * seq_len; ++n) sequence_of.push_back(n / seq_len);
  return ops::scale(ops::scatter_rows(x, std::move(sequence_of), num_sequences),
                    1 / static_cast<double>(seq_len));
}

}  // namespace

// Starts at a size that keeps that of its input.
Classifier::Patch::Patch(Index num_features, Index d_model)
    : map(num_features, d_model, true, 1 / std::sqrt(static_cast<double>(num_features))) {}

Classifier::ClassHead::ClassHead(Index d_model, Index num_classes)
    : weight(num_classes, d_model, Init::normal(kInitialStd)), bias(1, num_classes, Init::constant(0)) {}

void Classifier::ClassHead::visit(Visitor& visitor) {
  visitor.parameter("w", weight);
  visitor.product("w", {{1, visitor.context()}, weight.rows(), weight.cols()});
  visitor.parameter("b", bias);
}

Classifier::Classifier(const ModelConfig& config, Index num_features, Index num_classes, Index seq_len)
    : patch_(num_features, config.d_model),
      stack_(config, seq_len, /*causal=*/false),
      head_(config.d_model, num_classes) {}

ModelOutput Classifier::forward(const Batch& batch, const ForwardContext& context) {
  require(static_cast<Index>(batch.targets.size()) == batch.num_sequences,
          "[classifier] {} targets for {} sequences", batch.targets.size(), batch.num_sequences);
  const moe::TokenBatch tokens{batch.num_sequences, batch.seq_len, {}, batch.is_real};
  Stack::Output hidden =
      stack_.forward(patch_.map.forward(Variable(batch.features), context), tokens, context);
  const Variable pooled = mean_of_sequences(hidden.x, batch.num_sequences, batch.seq_len);
  const Variable logits = ops::add(ops::matmul_transposed(pooled, Variable(head_.weight, context.record)),
                                   Variable(head_.bias, context.record));
  context.observe("head", logits);
  ops::TaskLoss loss = ops::cross_entropy(logits, batch.targets, kIgnoredTarget);
  ModelOutput output{std::move(loss.mean), std::move(loss.rows), loss.num_counted, std::move(hidden.ffn), {}};
  for (Index b = 0; b < batch.num_sequences; ++b) {
    Index best = 0;
    logits.value().row(b).maxCoeff(&best);
    output.correct.push_back(best == batch.targets[static_cast<std::size_t>(b)] ? 1 : 0);
  }
  return output;
}

void Classifier::visit(Visitor& visitor) {
  visitor.module("patch", patch_, "embedding");
  stack_.visit(visitor);
  visitor.module("head", head_, "head");
}

}  // namespace moelab

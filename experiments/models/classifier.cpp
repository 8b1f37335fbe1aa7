#include "experiments/models/classifier.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/gather.hpp"
#include "core/ops/loss.hpp"
#include "core/ops/matmul.hpp"
#include "moe/padding.hpp"

#include <cmath>

namespace moelab {

namespace {

// (B T, d) -> (B, d), the mean of the real rows of each sequence.
Variable mean_of_sequences(const Variable& x, const Batch& batch) {
  std::vector<Index> rows, sequence_of;
  Matrix share = Matrix::Zero(batch.num_sequences, 1);  // of a real row; number of them at first
  for (Index n = 0; n < batch.size(); ++n) {
    if (!batch.is_real.empty() && batch.is_real[static_cast<std::size_t>(n)] == 0) continue;
    rows.push_back(n);
    sequence_of.push_back(n / batch.seq_len);
    share(sequence_of.back(), 0) += 1;
  }
  for (Index b = 0; b < batch.num_sequences; ++b) {
    require(share(b, 0) > 0, "[classifier] sequence {} of {} is padding only", b, batch.num_sequences);
    share(b, 0) = 1 / share(b, 0);
  }
  const bool all_real = static_cast<Index>(rows.size()) == batch.size();
  const Variable real = all_real ? x : ops::gather_rows(x, std::move(rows));
  return ops::multiply(ops::scatter_rows(real, std::move(sequence_of), batch.num_sequences),
                       Variable(std::move(share)));
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
  const Variable features = moe::zero_padding(Variable(batch.features), tokens);
  Stack::Output hidden = stack_.forward(patch_.map.forward(features, context), tokens, context);
  const Variable pooled = mean_of_sequences(hidden.x, batch);
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

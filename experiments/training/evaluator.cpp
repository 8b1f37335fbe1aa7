#include "experiments/training/evaluator.hpp"

#include "core/error.hpp"
#include "experiments/training/finite.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moelab {

namespace {

// Batches of one evaluation that have random numbers of their own. Not how many there are, so that the first
// batches draw the same whether more follow or not.
constexpr std::uint64_t kMaxBatches = std::uint64_t{1} << 32;

// A row that is not counted has NaN for its loss, as one whose loss is NaN: only their number tells them
// apart.
void require_finite_losses(const ModelOutput& output, Model& model, const Batch& batch,
                           const ForwardContext& context) {
  const auto finite =
      static_cast<Index>(std::count_if(output.target_losses.begin(), output.target_losses.end(),
                                       [](double loss) { return std::isfinite(loss); }));
  if (finite == output.num_counted) return;
  name_non_finite(model, batch, context,
                  fmt::format("the losses of {} of {} targets are not finite", output.num_counted - finite,
                              output.num_counted));
}

}  // namespace

Evaluation evaluate(Model& model, const Dataset& data, const EvaluationPlan& plan, ForwardContext context,
                    const EvaluationObserver& observer) {
  context.training = false;
  context.record = false;
  context.num_micro_batches = kMaxBatches;
  std::int64_t num_sequences = data.num_eval_sequences();
  if (plan.max_tokens) {
    // At least one sequence of each domain: they come in turn.
    const auto least = static_cast<std::int64_t>(data.domains().size());
    num_sequences = std::min(num_sequences, std::max(least, *plan.max_tokens / data.seq_len()));
  }
  require(num_sequences > 0, "[evaluate] the data hold no evaluation sequence");

  const std::size_t num_domains = data.domains().size();
  std::vector<double> sums(num_domains, 0.0);
  std::vector<std::int64_t> counts(num_domains, 0);
  std::int64_t target_bytes = 0;
  std::int64_t num_targets = 0;
  std::int64_t num_classified = 0, num_correct = 0;
  for (std::int64_t first = 0; first < num_sequences; first += plan.batch_sequences) {
    const Index count = std::min<Index>(plan.batch_sequences, num_sequences - first);
    const Batch batch = data.eval_batch(first, count);
    context.micro_batch = static_cast<std::uint64_t>(first / plan.batch_sequences);
    const ModelOutput output = checked_forward(model, batch, context);
    require_finite_losses(output, model, batch, context);
    const Index targets_per_sequence = static_cast<Index>(output.target_losses.size()) / batch.num_sequences;
    for (std::size_t i = 0; i < output.target_losses.size(); ++i) {
      if (std::isnan(output.target_losses[i])) continue;
      const auto sequence = i / static_cast<std::size_t>(targets_per_sequence);
      const auto domain = static_cast<std::size_t>(batch.domain[sequence]);
      sums[domain] += output.target_losses[i];
      ++counts[domain];
    }
    const std::vector<std::int32_t>& targets = output.targets_are_inputs ? batch.inputs : batch.targets;
    require(targets.empty() || targets.size() == output.target_losses.size(),
            "[evaluate] losses of {} targets, {} targets", output.target_losses.size(), targets.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] == kIgnoredTarget || std::isnan(output.target_losses[i])) continue;
      target_bytes += data.token_bytes(targets[i]);
      ++num_targets;
    }
    num_classified += static_cast<std::int64_t>(output.correct.size());
    num_correct += std::count(output.correct.begin(), output.correct.end(), 1);
    if (observer) observer(batch, output);
  }

  Evaluation result;
  double sum = 0;
  for (std::size_t d = 0; d < num_domains; ++d) {
    sum += sums[d];
    result.num_counted += counts[d];
    result.loss_by_domain.push_back(counts[d] > 0 ? sums[d] / static_cast<double>(counts[d])
                                                  : std::numeric_limits<double>::quiet_NaN());
  }
  require(result.num_counted > 0, "[evaluate] no target of {} sequences counts", num_sequences);
  if (num_targets > 0) {
    result.bytes_per_token = static_cast<double>(target_bytes) / static_cast<double>(num_targets);
  }
  if (num_classified > 0) {
    result.accuracy = static_cast<double>(num_correct) / static_cast<double>(num_classified);
  }
  result.loss = sum / static_cast<double>(result.num_counted);
  return result;
}

}  // namespace moelab

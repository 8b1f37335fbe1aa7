#include "experiments/training/train_step.hpp"

#include "core/ops/elementwise.hpp"
#include "experiments/training/finite.hpp"

#include <algorithm>
#include <cmath>

namespace moelab {

namespace {

struct NamedLoss {
  std::string name;
  Variable weighted;  // sum over layers of weight * value
  double value = 0;   // sum over layers of value
  int layers = 0;
};

std::vector<NamedLoss> losses_by_name(const std::vector<moe::FfnOutput>& ffn) {
  std::vector<NamedLoss> found;
  for (const moe::FfnOutput& layer : ffn) {
    for (const moe::AuxiliaryLoss& loss : layer.losses) {
      auto it =
          std::find_if(found.begin(), found.end(), [&](const NamedLoss& n) { return n.name == loss.name; });
      if (it == found.end()) it = found.insert(found.end(), {loss.name, {}, 0, 0});
      const Variable term = ops::scale(loss.value, static_cast<Scalar>(loss.weight));
      it->weighted = it->weighted.defined() ? ops::add(it->weighted, term) : term;
      it->value += static_cast<double>(loss.value.item());
      ++it->layers;
    }
  }
  return found;
}

void add_to(std::vector<std::pair<std::string, double>>& sums, const std::string& name, double value) {
  const auto it =
      std::find_if(sums.begin(), sums.end(), [&](const auto& entry) { return entry.first == name; });
  if (it == sums.end()) {
    sums.emplace_back(name, value);
  } else {
    it->second += value;
  }
}

}  // namespace

StepResult forward_backward(Model& model, const std::vector<Batch>& micro_batches, ForwardContext context) {
  StepResult result;
  context.training = true;
  context.record = true;
  context.num_micro_batches = micro_batches.size();
  const double share = 1.0 / static_cast<double>(micro_batches.size());
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    context.micro_batch = i;
    ModelOutput output = checked_forward(model, micro_batches[i], context);
    result.task_loss += share * static_cast<double>(output.loss.item());
    Variable total = output.loss;
    for (const NamedLoss& loss : losses_by_name(output.ffn)) {
      total = ops::add(total, ops::scale(loss.weighted, Scalar{1} / static_cast<Scalar>(loss.layers)));
      add_to(result.auxiliary_losses, loss.name, share * loss.value / loss.layers);
    }
    if (!std::isfinite(static_cast<double>(total.item()))) {
      name_non_finite(model, micro_batches[i], context, "the training loss is not finite");
    }
    backward(total, Matrix::Constant(1, 1, static_cast<Scalar>(share)));

    std::size_t layer = 0;
    for (moe::FfnOutput& ffn : output.ffn) {
      if (!ffn.routing) continue;
      if (result.routing.size() == layer) result.routing.emplace_back();
      result.routing[layer++].push_back(std::move(*ffn.routing));
    }
  }
  return result;
}

std::vector<std::int64_t> expert_tokens(const std::vector<moe::RoutingRecord>& records) {
  std::vector<std::int64_t> counts;
  for (const moe::RoutingRecord& record : records) {
    counts.resize(static_cast<std::size_t>(record.num_experts));
    for (const std::int32_t expert : record.expert_of) ++counts[static_cast<std::size_t>(expert)];
  }
  return counts;
}

}  // namespace moelab

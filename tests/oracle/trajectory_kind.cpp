// The training trajectory: every step through the trainer's own forward and backward passes.
#include "core/error.hpp"
#include "core/optim.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/training/train_step.hpp"
#include "tests/oracle/binding.hpp"
#include "tests/oracle/kinds.hpp"

#include <algorithm>
#include <memory>

namespace moelab::oracle {

namespace {

// One step's batches: rows cut into equal consecutive parts.
std::vector<Batch> batches_of_step(const Case& c, Index step) {
  const std::vector<std::int32_t> tokens = c.input_of("tokens").ids();
  const std::vector<std::int32_t> targets = c.input_of("targets").ids();
  const Index rows = c.input_of("tokens").cols();
  const Index size = rows / c.micro_batches;
  std::vector<Batch> batches;
  for (Index m = 0; m < c.micro_batches; ++m) {
    Batch batch;
    batch.seq_len = c.seq_len.value();
    batch.num_sequences = size / batch.seq_len;
    const auto begin = step * rows + m * size;
    batch.inputs.assign(tokens.begin() + begin, tokens.begin() + begin + size);
    batch.targets.assign(targets.begin() + begin, targets.begin() + begin + size);
    batches.push_back(std::move(batch));
  }
  return batches;
}

// Counts of the whole step for losses that ask for them, as the trainer makes them.
void count_step(Model& model, const std::vector<Batch>& batches, ForwardContext context) {
  std::vector<moe::FfnBlock*> blocks;
  for (moe::FfnBlock* block : model.ffn_blocks()) {
    if (block->num_experts() > 0) blocks.push_back(block);
  }
  if (std::none_of(blocks.begin(), blocks.end(), [](auto* b) { return b->needs_step_counts(); })) return;
  std::vector<std::vector<std::int64_t>> counts;
  for (moe::FfnBlock* block : blocks) counts.emplace_back(static_cast<std::size_t>(block->num_experts()), 0);
  for (const Batch& batch : batches) {
    std::size_t layer = 0;
    for (const moe::FfnOutput& ffn : model.forward(batch, context).ffn) {
      if (!ffn.routing) continue;
      for (const std::int32_t e : ffn.routing->expert_of) ++counts[layer][static_cast<std::size_t>(e)];
      ++layer;
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i]->before_step(counts[i]);
}

// For each loss, the mean over the layers that have it of weight * value; then the mean over micro-batches.
double weighted_auxiliary(Model& model, const std::vector<Batch>& batches, const ForwardContext& context) {
  double total = 0;
  for (const Batch& batch : batches) {
    std::map<std::string, std::pair<double, int>> sums;
    for (const moe::FfnOutput& ffn : model.forward(batch, context).ffn) {
      for (const moe::AuxiliaryLoss& loss : ffn.losses) {
        sums[loss.name].first += loss.weight * loss.value.item();
        ++sums[loss.name].second;
      }
    }
    for (const auto& [name, sum] : sums) total += sum.first / sum.second;
  }
  return total / static_cast<double>(batches.size());
}

void check_decay(const Case& c, ParameterStore& store) {
  const yaml::Node& decay = node_at(c.config, "decay");
  for (const NamedParameter& p : store.parameters()) {
    const bool listed = std::any_of(decay.items.begin(), decay.items.end(),
                                    [&](const yaml::Node& item) { return item.text == p.path; });
    require(listed == p.parameter->decayed(), "[oracle] {}: {} is {}decayed here", c.name, p.path,
            p.parameter->decayed() ? "" : "not ");
  }
}

void run_train_trajectory(const Case& c, Comparison& out) {
  const yaml::Node& train = node_at(c.config, "train");
  const yaml::Node& o = node_at(train, "optimizer");
  DataShape data;
  data.seq_len = c.seq_len.value();
  data.vocab_size = c.weight_of("embed").rows();
  const std::unique_ptr<Model> model = make_model(read_config<ModelConfig>(node_at(c.config, "model")), data);
  BoundModule bound(*model, c);
  ParameterStore& store = bound.store();
  check_decay(c, store);
  AdamWOptions adamw;
  const yaml::Node& betas = node_at(o, "betas");
  adamw.beta1 = std::stod(betas.items.at(0).text);
  adamw.beta2 = std::stod(betas.items.at(1).text);
  adamw.eps = number_at(o, "eps", adamw.eps);
  adamw.weight_decay = number_at(o, "weight_decay", 0);
  require(text_at(o, "kind", "adamw") == "adamw", "[oracle] {}: trajectories are of adamw", c.name);
  const std::unique_ptr<Optimizer> optimizer = make_adamw(store, adamw);
  const Schedule schedule = schedule_of(train);
  const double peak = number_at(o, "lr").value();
  const Index batch_tokens = integer_at(train, "batch_tokens", 0);

  std::map<std::string, std::vector<double>> series;
  for (Index step = 0; step < integer_at(train, "max_steps", 0); ++step) {
    const std::vector<Batch> batches = batches_of_step(c, step);
    ForwardContext context;
    context.training = true;
    context.step = static_cast<std::uint64_t>(step);
    context.num_micro_batches = batches.size();
    count_step(*model, batches, context);
    const double aux = weighted_auxiliary(*model, batches, context);
    store.zero_grads();
    const StepResult result = forward_backward(*model, batches, context);
    if (step == 0) bound.gradients(out);
    series["cross_entropy"].push_back(result.task_loss);
    series["aux"].push_back(aux);
    series["total"].push_back(result.task_loss + aux);
    for (const auto& [name, value] : result.auxiliary_losses) series["loss." + name].push_back(value);
    const std::optional<double> limit = number_at(train, "grad_clip");
    series["grad_norm"].push_back(limit ? clip_grad_norm(store, *limit) : grad_norm(store));
    const double lr = peak * schedule.factor(step * batch_tokens);
    series["lr"].push_back(lr);
    optimizer->step(lr);
    std::size_t layer = 0;
    for (moe::FfnBlock* block : model->ffn_blocks()) {
      if (block->num_experts() == 0) continue;
      const std::vector<std::int64_t> counts = expert_tokens(result.routing.at(layer++));
      block->after_step(counts, batch_tokens);
      series["counts"].insert(series["counts"].end(), counts.begin(), counts.end());
    }
  }
  for (const auto& [name, values] : series) out.output(name, std::span<const double>(values));
  for (const NamedParameter& p : store.parameters()) out.output("final." + p.path, p.parameter->value());
  for (const NamedState& s : states(*model)) out.output("final." + s.path, *s.state);
}

}  // namespace

const std::vector<Kind> kTrajectoryKinds{{"train_trajectory", run_train_trajectory}};

}  // namespace moelab::oracle

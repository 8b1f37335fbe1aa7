#include "experiments/bench/train_case.hpp"

#include "core/ops/elementwise.hpp"
#include "core/random.hpp"
#include "experiments/models/make_model.hpp"
#include "moe/routers/top_k.hpp"

#include <chrono>

namespace moelab::bench {

namespace {

ModelConfig model_config(const DecoderShape& shape, bool is_moe) {
  ModelConfig config;
  config.d_model = shape.d_model;
  config.num_layers = shape.num_layers;
  config.num_heads = shape.num_heads;
  if (!is_moe) {
    config.ffn.dense.activation = "swiglu";
    config.ffn.dense.d_ff = shape.d_ff * shape.top_k;
    return config;
  }
  config.ffn.kind = "moe";
  moe::ExpertGroup group;
  group.count = shape.num_experts;
  group.expert.set_kind("ffn");
  group.expert.as<moe::FfnExpertOptions>().activation = "swiglu";
  group.expert.as<moe::FfnExpertOptions>().d_ff = shape.d_ff;
  config.ffn.moe.experts = {group};
  config.ffn.moe.router.set_kind("top_k");
  config.ffn.moe.router.as<moe::TopKOptions>().choice.top_k = shape.top_k;
  config.ffn.moe.losses.load_balance.weight = 0.01;
  return config;
}

Batch random_batch(const DecoderShape& shape) {
  Batch batch;
  batch.num_sequences = shape.batch;
  batch.seq_len = shape.seq_len;
  const random::Stream stream(0, "bench/tokens");
  const auto vocab = static_cast<std::uint64_t>(shape.vocab_size);
  for (Index i = 0; i < batch.size(); ++i) {
    batch.inputs.push_back(static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(2 * i), vocab)));
    batch.targets.push_back(
        static_cast<std::int32_t>(stream.below(static_cast<std::uint64_t>(2 * i + 1), vocab)));
  }
  return batch;
}

}  // namespace

TrainCase::TrainCase(const DecoderShape& shape, gemm::Precision precision, bool is_moe)
    : batch_(random_batch(shape)),
      model_(make_model(model_config(shape, is_moe),
                        {.seq_len = shape.seq_len, .vocab_size = shape.vocab_size})),
      store_(*model_, 0),
      optimizer_(make_adamw(store_, {.weight_decay = 0.1})) {
  context_.training = context_.record = true;
  context_.precision = precision;
}

void TrainCase::step() {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t before = gemm::multiply_adds();
  const auto start = Clock::now();
  Variable total;
  {
    const ModelOutput output = model_->forward(batch_, context_);
    total = output.loss;
    double layers_with_losses = 0;
    for (const moe::FfnOutput& ffn : output.ffn) layers_with_losses += ffn.losses.empty() ? 0 : 1;
    for (const moe::FfnOutput& ffn : output.ffn) {
      for (const moe::AuxiliaryLoss& loss : ffn.losses) {
        total = ops::add(total, ops::scale(loss.value, loss.weight / layers_with_losses));
      }
    }
  }
  const auto forward_done = Clock::now();
  store_.zero_grads();
  backward(total);
  total = {};
  const auto backward_done = Clock::now();
  clip_grad_norm(store_, 1.0);
  optimizer_->step(1e-3);
  ++context_.step;
  const auto update_done = Clock::now();
  multiply_adds_ = gemm::multiply_adds() - before;
  const auto add = [this](Phase phase, std::chrono::duration<double> time) {
    phases_[static_cast<std::size_t>(phase)].push_back(time.count());
  };
  add(Phase::forward, forward_done - start);
  add(Phase::backward, backward_done - forward_done);
  add(Phase::update, update_done - backward_done);
}

double TrainCase::median(Phase phase, std::size_t count) const {
  const std::vector<double>& all = phases_[static_cast<std::size_t>(phase)];
  return summarize({all.end() - static_cast<std::ptrdiff_t>(count), all.end()}).median;
}

}  // namespace moelab::bench

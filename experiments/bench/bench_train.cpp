#include "core/ops/elementwise.hpp"
#include "core/optim.hpp"
#include "core/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/peer.hpp"
#include "experiments/models/make_model.hpp"
#include "moe/routers/top_k.hpp"

#include <array>
#include <chrono>
#include <memory>

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

enum Phase { kForward, kBackward, kUpdate, kNumPhases };

// A model with all that a training step needs.
class TrainCase {
 public:
  TrainCase(const DecoderShape& shape, gemm::Precision precision, bool is_moe)
      : batch_(random_batch(shape)),
        model_(make_model(model_config(shape, is_moe),
                          {.seq_len = shape.seq_len, .vocab_size = shape.vocab_size})),
        store_(*model_, 0),
        optimizer_(make_adamw(store_, {.weight_decay = 0.1})) {
    context_.training = context_.record = true;
    context_.precision = precision;
  }

  void step() {
    using Clock = std::chrono::steady_clock;
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
    phases_[kForward].push_back(std::chrono::duration<double>(forward_done - start).count());
    phases_[kBackward].push_back(std::chrono::duration<double>(backward_done - forward_done).count());
    phases_[kUpdate].push_back(std::chrono::duration<double>(update_done - backward_done).count());
  }
  double median(Phase phase) const { return summarize(phases_[phase]).median; }

 private:
  Batch batch_;
  std::unique_ptr<Model> model_;
  ParameterStore store_;
  std::unique_ptr<Optimizer> optimizer_;
  ForwardContext context_;
  std::array<std::vector<double>, kNumPhases> phases_;
};

}  // namespace

Report bench_train(const Options& options, const DecoderShape& shape) {
  Report report = new_report();
  Table table;
  table.name = "train";
  table.title = fmt::format(
      "Training steps of a decoder: d_model {}, {} layers, {} heads, dense d_ff {} or {} experts of {} with "
      "top-{}, {} x {} tokens.",
      shape.d_model, shape.num_layers, shape.num_heads, shape.d_ff * shape.top_k, shape.num_experts,
      shape.d_ff, shape.top_k, shape.batch, shape.seq_len);
  table.labels = {"ffn", "precision"};
  table.columns = {{"step_ms", "ms", "median time of a step", 1},
                   {"spread", "1", "middle half of the times over the median", 2},
                   {"tokens_per_second", "tokens/s", "speed of training", 0},
                   {"forward_ms", "ms", "forward pass and losses", 1},
                   {"backward_ms", "ms", "backward pass", 1},
                   {"update_ms", "ms", "clipping and optimizer", 1},
                   {"over_dense", "1", "time over that of the dense model", 2},
                   {"peer_tokens_per_second", "tokens/s", "speed of PyTorch", 0},
                   {"peer", "1", "speed over that of PyTorch", 2}};
  for (const gemm::Precision precision : options.precisions) {
    TrainCase dense(shape, precision, false);
    TrainCase mixture(shape, precision, true);
    const std::vector<Timing> times =
        measure_in_turn(options.repeats, {[&] { dense.step(); }, [&] { mixture.step(); }});
    const auto tokens = static_cast<double>(shape.batch * shape.seq_len);
    for (const bool is_moe : {false, true}) {
      const Timing& time = times[is_moe ? 1 : 0];
      const TrainCase& model = is_moe ? mixture : dense;
      const double peer = run_train_peer(options, shape, precision, is_moe);
      table.add({{is_moe ? "moe" : "dense", name_of(precision)},
                 {time.median * 1e3, time.spread, tokens / time.median, model.median(kForward) * 1e3,
                  model.median(kBackward) * 1e3, model.median(kUpdate) * 1e3, time.median / times[0].median,
                  tokens / peer, peer / time.median}});
    }
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace moelab::bench

#include "experiments/training/trainer.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/training/finite.hpp"
#include "experiments/training/run_one.hpp"
#include "moe/routers/top_k.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <numeric>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

struct Trained {
  Matrix parameters;
  RunData results;
};

// Each call in a folder of its own.
Trained train(const SmallExperiment& fixture, const std::string& variant) {
  static int number = 0;
  const Run& run = fixture.run(variant);
  const fs::path folder = fixture.folder.path() / fmt::format("run{}", number++);
  fs::create_directories(folder);
  const auto model = make_model(run.config.model, shape_of(*fixture.data));
  RunInfo info;
  info.name = run.name;
  info.domains = fixture.data->domains();
  info.moe_layers = moe_layers(*model);
  Recorder recorder = Recorder::create(folder, info);
  Trainer trainer(run, *model, *fixture.data, recorder, {});
  CHECK(trainer.train() == RunStatus::done);
  return {trainer.parameters().values(), recorder.data()};
}

}  // namespace

TEST_CASE("a run learns, and its records say how it went", "[trainer]") {
  const SmallExperiment fixture({"train.max_steps=80"});
  const Trained moe = train(fixture, "moe");
  const RunData& r = moe.results;
  REQUIRE(r.train.size() == 21);  // step 1, and every 4th to 80
  CHECK(r.train.front().step == 1);
  CHECK(r.train.back().step == 80);
  CHECK(r.train.back().tokens == 80 * 128);
  CHECK(r.train.front().lr == 0);   // the first step of a warm-up
  CHECK(r.train.front().loss > 5);  // log 256 = 5.5
  CHECK(r.eval.size() == 20);       // every 512 tokens of 10,240
  CHECK(r.eval.back().loss < 0.75 * r.eval.front().loss);
  CHECK(r.eval.back().loss_by_domain.size() == 2);
  CHECK(std::abs(r.eval.back().bits_per_byte - r.eval.back().loss / std::log(2.0)) < 1e-12);
  REQUIRE(r.routing.size() == 21);
  for (const LayerRouting& layer : r.routing.back().layers) {
    std::int64_t tokens = 0;
    for (const std::int32_t count : layer.expert_tokens) tokens += count;
    CHECK(tokens == 2 * 128);
    CHECK(std::abs(layer.active_compute_ratio - 0.5) < 1e-12);
  }
  // Two layers of two losses, each reported once.
  REQUIRE(r.train.back().auxiliary_losses.size() == 2);
  CHECK(r.train.back().auxiliary_losses[0].first == "load_balance");
  CHECK(std::abs(r.train.back().active_compute_ratio - 0.5) < 1e-12);
  // Every token of the evaluation chose two experts, in each of two layers.
  REQUIRE(r.statistics.coactivation.size() == 2);
  for (const auto& pairs : r.statistics.coactivation) {
    std::int64_t sum = 0;
    for (const std::int64_t n : pairs) sum += n;
    CHECK(sum == 512 * 4);
  }
  CHECK(r.statistics.saturation.back() == std::vector<double>{1, 1});
  CHECK(r.samples.num_samples == 2);
  CHECK(r.samples.num_positions == 4);
  REQUIRE(r.samples.token_text.size() == r.samples.token_id.size());
  CHECK(r.samples.token_text[0] == std::string(1, static_cast<char>(r.samples.token_id[0])));
}

TEST_CASE("the same seed gives the same bits at any number of threads", "[trainer][determinism]") {
  const SmallExperiment fixture;
  for (const std::string variant : {"dense", "moe"}) {
    parallel::set_threads(1);
    const Trained one = train(fixture, variant);
    for (const int threads : {2, 3, 8}) {
      parallel::set_threads(threads);
      const Trained several = train(fixture, variant);
      CHECK(several.parameters == one.parameters);
      CHECK(several.results.eval.back().loss == one.results.eval.back().loss);
    }
    parallel::set_threads(0);
  }
}

TEST_CASE("another seed, or evaluating more often, changes what it should", "[trainer]") {
  const SmallExperiment fixture;
  const Matrix parameters = train(fixture, "moe").parameters;
  CHECK(train(SmallExperiment({"seeds=[6]"}), "moe").parameters != parameters);
  // Evaluation leaves no trace in training.
  CHECK(train(SmallExperiment({"eval.every_tokens=128"}), "moe").parameters == parameters);
  CHECK(train(SmallExperiment({"log.routing_every_steps=1"}), "moe").parameters == parameters);
}

TEST_CASE("counts of a step are counted once, with a counting pass, micro-batches and evaluations too",
          "[trainer]") {
  const SmallExperiment fixture({"train.micro_batch_tokens=32", "log.routing_every_steps=1",
                                 "log.every_steps=1", "eval.every_tokens=128"});
  SmallExperiment counted({"train.micro_batch_tokens=32", "log.routing_every_steps=1", "log.every_steps=1",
                           "eval.every_tokens=128"});
  for (Run& run : counted.experiment.runs) {
    run.config.model.ffn.moe.losses.load_balance.scope = "global";  // a pass over the step that counts only
  }
  for (const SmallExperiment* experiment : {&fixture, static_cast<const SmallExperiment*>(&counted)}) {
    for (const RoutingRecordRow& row : train(*experiment, "moe").results.routing) {
      for (const LayerRouting& layer : row.layers) {
        CHECK(std::accumulate(layer.expert_tokens.begin(), layer.expert_tokens.end(), 0) == 2 * 128);
      }
    }
  }
}

TEST_CASE("the expert biases of every layer move, also behind layers that have none", "[trainer]") {
  SmallExperiment fixture({"model.num_layers=4", "train.max_steps=1", "train.schedule.warmup_tokens=0"});
  const Run& base = fixture.run("moe");
  Run run = base;
  moe::FfnConfig with_bias = run.config.model.ffn;
  with_bias.moe.router.as<moe::TopKOptions>().choice.expert_bias = moe::ExpertBiasConfig{.rate = 0.01};
  moe::FfnConfig dense = fixture.run("dense").config.model.ffn;
  // Layer 0 a mixture without bias, 1 dense, 2 and 3 mixtures with bias.
  std::vector<LayerOverride>& layers = run.config.model.layers;
  layers.resize(2);
  layers[0].at = {1};
  layers[0].ffn = dense;
  layers[1].at = {2, 3};
  layers[1].ffn = with_bias;
  const fs::path folder = fixture.folder.path() / "biases";
  fs::create_directories(folder);
  const auto model = make_model(run.config.model, shape_of(*fixture.data));
  RunInfo info;
  info.name = run.name;
  info.domains = fixture.data->domains();
  info.moe_layers = moe_layers(*model);
  Recorder recorder = Recorder::create(folder, info);
  Trainer trainer(run, *model, *fixture.data, recorder, {});
  REQUIRE(trainer.train() == RunStatus::done);
  const std::vector<NamedState> biases = states(*model);
  REQUIRE(biases.size() == 2);
  for (const NamedState& bias : biases) {
    INFO(bias.path);
    // One step of the sign rule, by the counts that were recorded.
    const std::size_t layer = bias.path.starts_with("layers.2") ? 1 : 2;  // among the mixtures
    const std::vector<std::int32_t>& counts = recorder.data().routing.back().layers[layer].expert_tokens;
    for (std::size_t e = 0; e < counts.size(); ++e) {
      const int missing = 64 - counts[e];  // 2 * 128 choices of 4 experts
      const double change = missing > 0 ? 0.01 : missing < 0 ? -0.01 : 0;
      CHECK_THAT(static_cast<double>((*bias.state)(0, static_cast<Index>(e))), WithinAbs(change, 1e-6));
    }
  }
}

TEST_CASE("micro-batches of a step sum to the gradient of the whole batch", "[trainer]") {
  // Without dropout and auxiliary losses the mean over micro-batches is the mean over the batch.
  const std::vector<std::string> plain{
      "model.dropout=0", "train.max_steps=1", "train.schedule.warmup_tokens=0",
      "train.optimizer={kind: sgd, lr: 1.0, momentum: 0, weight_decay: 0}", "train.grad_clip=null"};
  std::vector<std::string> split = plain;
  split.emplace_back("train.micro_batch_tokens=32");
  const Matrix whole = train(SmallExperiment(plain), "dense").parameters;
  const Matrix parts = train(SmallExperiment(split), "dense").parameters;
  CHECK((whole - parts).cwiseAbs().maxCoeff() < 1e-6);
}

TEST_CASE("a value that is not finite ends the run with its name, and the snapshot stays", "[trainer]") {
  const SmallExperiment fixture(
      {"train.optimizer.lr=1e30", "train.schedule.warmup_tokens=0", "train.grad_clip=null"});
  const Run& run = fixture.run("moe");
  const fs::path folder = fixture.folder.path() / "diverging";
  fs::create_directories(folder);
  const RunResult result = run_one(run, {*fixture.data, folder, {}, {}});
  CHECK(result.status == RunStatus::diverged);
  INFO(result.reason);
  // Adam's first step moves every weight that has a gradient by the rate, 1e30. In the second the norm makes
  // 1 of the embeddings, which its gain makes 1e30 again, and the products of attention are sums of 1e60.
  CHECK(result.reason.find("step 2: the output of layers.0.attn is not finite (") == 0);
  const RunData recovered = recover_run(folder);
  REQUIRE_FALSE(recovered.train.empty());
  CHECK(std::isfinite(recovered.train.back().loss));
  CHECK(recovered.status == RunStatus::diverged);
}

TEST_CASE("the first sub-layer whose output is not finite is named", "[trainer]") {
  // A parameter that overflows in the second layer's FFN alone.
  const SmallExperiment fixture;
  const Run& run = fixture.run("dense");
  const auto model = make_model(run.config.model, shape_of(*fixture.data));
  ParameterStore store(*model, 1);
  for (const NamedParameter& p : store.parameters()) {
    if (p.path == "layers.1.ffn.w1" || p.path == "layers.1.ffn.w3")
      p.parameter->value().setConstant(Scalar(1e30));
  }
  const Batch batch = fixture.data->train_batch(1, 0, 2);
  ForwardContext context;
  context.step = 6;
  context.training = true;
  std::string message;
  try {
    name_non_finite(*model, batch, context, "the loss is not finite");
  } catch (const NonFiniteError& e) {
    message = e.what();
  }
  INFO(message);
  CHECK(message.find("step 7: ") == 0);
  CHECK(message.find("layers.1.ffn") != std::string::npos);
}

TEST_CASE("a stop request ends the run after the step, with a snapshot", "[trainer]") {
  const SmallExperiment fixture;
  const fs::path folder = fixture.folder.path() / "stopped";
  fs::create_directories(folder);
  int asked = 0;
  RunSetup setup{*fixture.data, folder, {}, {}};
  setup.hooks.stop_requested = [&] { return ++asked == 5; };
  const RunResult result = run_one(fixture.run("moe"), setup);
  CHECK(result.status == RunStatus::interrupted);
  CHECK(recover_run(folder).train.back().step == 4);
  CHECK(fs::exists(folder / "run.h5"));
}

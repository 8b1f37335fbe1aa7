// Steps and states that are not finite: skipped, or the end of the run, and never in a checkpoint.
#include "core/checkpoint.hpp"
#include "core/error.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/evaluator.hpp"
#include "experiments/training/finite.hpp"
#include "experiments/training/run_one.hpp"
#include "experiments/training/train_step.hpp"
#include "experiments/training/trainer.hpp"
#include "moe/routers/top_k.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// The same features in every row, but for batches that have a NaN.
class BrokenData final : public Dataset {
 public:
  explicit BrokenData(std::vector<std::int64_t> broken, double feature = 0.25, double target = 1)
      : broken_(std::move(broken)),
        feature_(static_cast<Scalar>(feature)),
        target_(static_cast<Scalar>(target)) {}
  const std::vector<std::string>& domains() const override { return names_; }
  Index seq_len() const override { return 1; }
  Index num_features() const override { return 4; }
  Index num_targets() const override { return 4; }
  Batch train_batch(std::uint64_t /*seed*/, std::int64_t first, Index count) const override {
    Batch batch = eval_batch(first, count);
    if (std::find(broken_.begin(), broken_.end(), first / count) != broken_.end())
      batch.features(1, 2) = std::numeric_limits<Scalar>::quiet_NaN();
    return batch;
  }
  std::int64_t num_eval_sequences() const override { return 8; }
  Batch eval_batch(std::int64_t first, Index count) const override {
    Batch batch;
    batch.num_sequences = count;
    batch.seq_len = 1;
    batch.features = Matrix::Constant(count, 4, feature_ * static_cast<Scalar>(first % 3 + 1));
    batch.regression_targets = Matrix::Constant(count, 4, target_);
    batch.domain.assign(static_cast<std::size_t>(count), 0);
    return batch;
  }
  std::vector<DomainStatistics> statistics() const override { return {{"only", 0, 8, 0}}; }

 private:
  std::vector<std::string> names_{"only"};
  std::vector<std::int64_t> broken_;  // numbers of training batches
  Scalar feature_, target_;
};

struct Ended {
  RunResult result;
  RunData data;
  std::vector<std::string> notes;
};

// 24 steps of 8 tokens of one mixture of two experts.
Experiment experiment_of(const TemporaryFolder& folder, std::vector<std::string> overrides) {
  folder.write(
      "e.yaml",
      "version: 1\n"
      "data: {kind: synthetic, num_features: 4, num_targets: 4}\n"
      "model: {kind: ffn, d_model: 4, num_layers: 1, ffn: {kind: moe, experts: {kind: ffn, count: 2, "
      "activation: relu, d_ff: 4}, router: {kind: top_k, top_k: 1, normalize: false}}}\n"
      "train: {max_steps: 24, batch_tokens: 8, optimizer: {lr: 1e-2}}\n"
      "log: {every_steps: 1}\n");
  LoadOptions options;
  options.overrides = std::move(overrides);
  return load_experiment(folder.path() / "e.yaml", options);
}

RunInfo info_of(const Run& run, const Dataset& data, Model& model) {
  RunInfo info;
  info.name = run.name;
  info.domains = data.domains();
  info.moe_layers = moe_layers(model);
  return info;
}

Ended trained(const TemporaryFolder& folder, const Dataset& data, std::vector<std::string> overrides) {
  const Experiment experiment = experiment_of(folder, std::move(overrides));
  fs::remove_all(folder.path() / "run");
  fs::create_directories(folder.path() / "run");
  Ended ended;
  RunSetup setup{data, folder.path() / "run", {}, {}};
  setup.note = [&](const std::string& text) { ended.notes.push_back(text); };
  ended.result = run_one(experiment.runs.front(), setup);
  ended.data = recover_run(folder.path() / "run");
  return ended;
}

}  // namespace

TEST_CASE("a step with a NaN in its data ends the run, or is skipped, as the config says", "[non_finite]") {
  const TemporaryFolder folder;
  SECTION("one batch a step") {
    const Ended stopped = trained(folder, BrokenData({5}), {"train.non_finite=stop"});
    CHECK(stopped.result.status == RunStatus::diverged);
    CHECK(stopped.result.reason == "step 6: the data: features are not finite (NaN at row 1, column 2)");
    CHECK(stopped.data.train.back().step == 5);

    const Ended skipped = trained(folder, BrokenData({5, 6, 20}), {"train.non_finite=skip"});
    CHECK(skipped.result.status == RunStatus::done);
    REQUIRE(skipped.notes.size() == 3);
    CHECK_THAT(skipped.notes[0], Contains("skipped: step 6: "));
    CHECK_THAT(skipped.notes[2], Contains("skipped: step 21: "));
    CHECK(skipped.data.train.size() == 21);
    CHECK(skipped.data.train.back().tokens == 24 * 8);
    for (const TrainRecord& record : skipped.data.train) CHECK(std::isfinite(record.loss));

    const Ended hopeless =
        trained(folder, BrokenData({3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}), {"train.non_finite=skip"});
    CHECK(hopeless.result.status == RunStatus::diverged);
    CHECK_THAT(hopeless.result.reason, Contains("step 14: ") && Contains("10 steps before it"));
  }
  // The counts of a step need a pass over its micro-batches before the one that trains.
  SECTION("two micro-batches a step and a loss over the whole step") {
    const auto with = [](const std::string& choice) {
      return std::vector<std::string>{"train.non_finite=" + choice, "train.micro_batch_tokens=4",
                                      "model.ffn.losses={load_balance: {weight: 0.01, scope: global}}"};
    };
    const Ended stopped = trained(folder, BrokenData({11}), with("stop"));
    CHECK(stopped.result.status == RunStatus::diverged);
    CHECK(stopped.result.reason.starts_with("step 6: "));
    CHECK(stopped.data.train.back().step == 5);

    const Ended skipped = trained(folder, BrokenData({11, 12, 41}), with("skip"));
    INFO(skipped.result.reason);
    CHECK(skipped.result.status == RunStatus::done);
    REQUIRE(skipped.notes.size() == 3);
    CHECK_THAT(skipped.notes[0], Contains("skipped: step 6: "));
    CHECK_THAT(skipped.notes[1], Contains("skipped: step 7: "));
    CHECK_THAT(skipped.notes[2], Contains("skipped: step 21: "));
    CHECK(skipped.data.train.size() == 21);
  }
}

TEST_CASE("a skipped step leaves weights, moments and expert biases as they were", "[non_finite]") {
  const TemporaryFolder folder;
  const Ended ended = trained(folder, BrokenData({5}),
                              {"train.non_finite=skip", "train.checkpoint={every_tokens: 8, keep: 24}",
                               "model.ffn.router.expert_bias={rate: 0.01}", "train.optimizer.kind=adamw"});
  REQUIRE(ended.result.status == RunStatus::done);
  const CheckpointFolder checkpoints(folder.path() / "run" / "checkpoints");
  const hdf5::Reader before(checkpoints.path_of(5)), skipped(checkpoints.path_of(6)),
      after(checkpoints.path_of(7));
  const auto number = [](const hdf5::Reader& file, const char* name) {
    return std::get<std::int64_t>(file.attribute("", name).value());
  };
  CHECK(number(skipped, "step") == 6);
  CHECK(number(before, "optimizer_steps") == 5);
  CHECK(number(skipped, "optimizer_steps") == 5);
  CHECK(number(after, "optimizer_steps") == 6);
  for (const std::string group : {"parameters", "state", "optimizer"}) {
    INFO(group);
    bool differs = false;
    int compared = 0;
    for (const std::string& name : before.datasets(group)) {
      INFO(name);
      const std::string path = group + "/" + name;
      CHECK(skipped.read<float>(path) == before.read<float>(path));
      differs = differs || after.read<float>(path) != before.read<float>(path);
      ++compared;
    }
    CHECK(compared > 0);
    CHECK(differs);
  }
}

TEST_CASE("parameters that are not finite are never written to a checkpoint", "[non_finite]") {
  // Warm-up: the first step has a learning rate of 0; at the second Adam's correction for its start makes the
  // rate infinite in float32.
  const SmallExperiment fixture(
      {"train.optimizer.lr=3e38", "train.checkpoint={every_tokens: 128, keep: 12}"});
  const Run& run = fixture.run("moe");
  const fs::path folder = fixture.folder.path() / "diverging";
  fs::create_directories(folder);
  const RunResult result = run_one(run, {*fixture.data, folder, {}, {}});
  CHECK(result.status == RunStatus::diverged);
  CHECK_THAT(result.reason, Contains("step 2: parameter ") && Contains(" is not finite"));
  CHECK(CheckpointFolder(folder / "checkpoints").steps() == std::vector<std::int64_t>{1});
}

// Without checkpoints, too, and with `skip`: an update that has gone wrong cannot be left out any more.
TEST_CASE("weights that an update breaks are found at its step, by their names", "[non_finite]") {
  const TemporaryFolder folder;
  for (const std::string choice : {"stop", "skip"}) {
    const Ended ended =
        trained(folder, BrokenData({}), {"train.optimizer.lr=3e38", "train.non_finite=" + choice});
    INFO(ended.result.reason);
    CHECK(ended.result.status == RunStatus::diverged);
    CHECK_THAT(ended.result.reason, Contains("step 1: parameter layers.0.ffn."));
    CHECK(ended.notes.empty());
    CHECK(ended.data.train.empty());
  }
}

TEST_CASE("broken weights of an expert that has no tokens are found in the next step", "[non_finite]") {
  const TemporaryFolder folder;
  const BrokenData data({});
  const Experiment experiment = experiment_of(folder, {"train.non_finite=skip"});
  const Run& run = experiment.runs.front();
  const auto model = make_model(run.config.model, shape_of(data));
  Recorder recorder = Recorder::create(folder.path(), info_of(run, data, *model));
  Trainer trainer(run, *model, data, recorder, {});
  for (const NamedParameter& p : trainer.parameters().parameters()) {
    MatrixView w = p.parameter->value();
    // All features are positive: every token goes to expert 0.
    if (p.path == "layers.0.ffn.router.weight") w.row(0).setConstant(1), w.row(1).setConstant(-1);
    if (p.path == "layers.0.ffn.experts.1.w1") w(2, 1) = std::numeric_limits<Scalar>::infinity();
    p.parameter->mark_changed();
  }
  CHECK_THROWS_WITH(trainer.train(),
                    "step 1: parameter layers.0.ffn.experts.1.w1 is not finite (infinity at "
                    "row 2, column 1)");
}

// Biases that move by 3e38 a step. All rows are multiples of one, so all tokens go to the same of three
// experts, and of the other two, which rise to 3e38 in the first step, one has no tokens in the second and
// becomes infinite.
TEST_CASE("what routers keep is found at the step that breaks it", "[non_finite]") {
  const TemporaryFolder folder;
  const Ended ended = trained(folder, BrokenData({}),
                              {"model.ffn.experts.count=3", "model.ffn.router.expert_bias={rate: 3e38}"});
  INFO(ended.result.reason);
  CHECK(ended.result.status == RunStatus::diverged);
  CHECK_THAT(ended.result.reason,
             Contains("step 2: state layers.0.ffn.router.expert_bias is not finite (infinity"));
}

// The router is the first to look at its input, but not the one to blame.
TEST_CASE("what breaks before a router is named, in training and in evaluation", "[non_finite]") {
  const SmallExperiment fixture;
  const Run& run = fixture.run("moe");
  const auto model = make_model(run.config.model, shape_of(*fixture.data));
  ParameterStore store(*model, 1);
  for (const NamedParameter& p : store.parameters()) {
    if (p.path.starts_with("layers.1.attn.")) p.parameter->value().setConstant(1e30F);
    p.parameter->mark_changed();
  }
  ForwardContext context;
  context.step = 6;
  CHECK_THROWS_WITH(forward_backward(*model, {fixture.data->train_batch(1, 0, 2)}, context),
                    Contains("step 7: the output of layers.1.attn is not finite ("));
  CHECK_THROWS_WITH(evaluate(*model, *fixture.data, {2, 64}, context),
                    Contains("step 6: in the evaluation: the output of layers.1.attn is not finite ("));
  // A logit of its own making is the router's.
  for (const NamedParameter& p : store.parameters()) {
    if (p.path.starts_with("layers.1.attn.")) p.parameter->value().setZero();
    if (p.path == "layers.1.ffn.router.weight") p.parameter->value().setConstant(3e38F);
    if (p.path == "layers.1.norm2.g") p.parameter->value().setConstant(100);
    p.parameter->mark_changed();
  }
  CHECK_THROWS_WITH(forward_backward(*model, {fixture.data->train_batch(1, 0, 2)}, context),
                    Contains("step 7: [router] layer 1: the logit of token 0 "));
}

// y = 1e15 h with h near 1 against targets of 1e18: the loss is 1e36, its gradient by h 1e18 / N * 1e15 or
// so. In layer 1, h = 1e10 relu(1e-10 x): forward all is near 1, backward the gradient by the activation is
// above 1e38. What lies nearer to the loss (w2 of layer 1, the head) stays finite, all before it is not.
TEST_CASE("of the gradients that overflow the one next to the loss is named", "[non_finite]") {
  const TemporaryFolder folder;
  const BrokenData data({}, 1, 1e18);
  const Experiment experiment = experiment_of(folder, {"model.d_model=8", "model.num_layers=2",
                                                       "model.ffn={kind: dense, activation: relu, d_ff: 4}"});
  const auto model = make_model(experiment.runs.front().config.model, shape_of(data));
  ParameterStore store(*model, 1);
  for (const NamedParameter& p : store.parameters()) {
    const bool is_head = p.path == "out.w";
    const bool down = p.path == "layers.1.ffn.w1", up = p.path == "layers.1.ffn.w2";
    p.parameter->value().setConstant(is_head ? 1e15F : down ? 1e-10F : up ? 1e10F : 0.25F);
    p.parameter->mark_changed();
  }
  store.zero_grads();
  forward_backward(*model, {data.train_batch(1, 0, 8)}, ForwardContext{});
  for (const NamedParameter& p : store.parameters()) {
    INFO(p.path);
    const bool after = p.path.starts_with("out.") || p.path == "layers.1.ffn.w2";
    CHECK(p.parameter->grad().allFinite() == after);
  }
  CHECK_THROWS_WITH(grad_norm(store), "[optimizer] the gradient of layers.1.ffn.w1 is not finite");
}

// Targets of 5e18 give losses below 1e38 and, at features of 1000, gradients above 1e20, whose squares are
// infinite in float32. The weights stay finite: an infinite second moment stops them.
TEST_CASE("moments that overflow end the run, with and without checkpoints", "[non_finite]") {
  const TemporaryFolder folder;
  const BrokenData data({}, 1000, 5e18);
  for (const std::string checkpoint : {"null", "{every_tokens: 8, keep: 24}"}) {
    const Ended ended = trained(folder, data, {"train.grad_clip=null", "train.checkpoint=" + checkpoint});
    INFO(ended.result.reason);
    CHECK(ended.result.status == RunStatus::diverged);
    CHECK_THAT(ended.result.reason, Contains("optimizer state v.") && Contains("infinity"));
    CHECK(CheckpointFolder(folder.path() / "run" / "checkpoints").steps().empty());
  }
}

TEST_CASE("the state of a module that is not finite is named", "[non_finite]") {
  const SmallExperiment fixture;
  ModelConfig config = fixture.run("moe").config.model;
  config.ffn.moe.router.as<moe::TopKOptions>().choice.expert_bias = moe::ExpertBiasConfig{.rate = 0.01};
  const auto model = make_model(config, shape_of(*fixture.data));
  ParameterStore store(*model, 1);
  const auto optimizer = make_sgd(store, {});
  require_finite_state(*model, *optimizer, 3);
  REQUIRE_FALSE(states(*model).empty());
  const NamedState state = states(*model).back();
  (*state.state)(0, 1) = -std::numeric_limits<Scalar>::infinity();
  CHECK_THROWS_WITH(require_finite_state(*model, *optimizer, 3),
                    Contains("step 3: state " + state.path + " is not finite (infinity at row 0, column 1)"));
}

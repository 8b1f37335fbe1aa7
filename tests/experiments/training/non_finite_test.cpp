// Steps and states that are not finite: skipped, or the end of the run, and never in a checkpoint.
#include "core/checkpoint.hpp"
#include "core/error.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/finite.hpp"
#include "experiments/training/run_one.hpp"
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
Ended trained(const TemporaryFolder& folder, const Dataset& data, std::vector<std::string> overrides) {
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
  const Experiment experiment = load_experiment(folder.path() / "e.yaml", options);
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
    CHECK_THAT(stopped.result.reason, Contains("step 6: "));
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
  // Warm-up: the first step has a learning rate of 0, the second one that is infinite in float32.
  const SmallExperiment fixture(
      {"train.optimizer.lr=1e39", "train.checkpoint={every_tokens: 128, keep: 12}"});
  const Run& run = fixture.run("moe");
  const fs::path folder = fixture.folder.path() / "diverging";
  fs::create_directories(folder);
  const RunResult result = run_one(run, {*fixture.data, folder, {}, {}});
  CHECK(result.status == RunStatus::diverged);
  CHECK_THAT(result.reason, Contains("step 2: parameter ") && Contains(" is not finite"));
  CHECK(CheckpointFolder(folder / "checkpoints").steps() == std::vector<std::int64_t>{1});
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

// Single steps of the trainer on data made for them, against figures worked out by hand.
#include "experiments/config/experiment.hpp"
#include "experiments/models/make_model.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/trainer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>
#include <functional>
#include <map>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// Two columns of features and of targets, one row a sequence; the number of the sequence says which.
class MadeUp final : public Dataset {
 public:
  using Rows = std::function<std::pair<Matrix, Matrix>(std::int64_t first, Index count)>;
  explicit MadeUp(Rows rows) : rows_(std::move(rows)) {}
  const std::vector<std::string>& domains() const override { return names_; }
  Index seq_len() const override { return 1; }
  Index num_features() const override { return 2; }
  Index num_targets() const override { return 2; }
  Batch train_batch(std::uint64_t /*seed*/, std::int64_t first, Index count) const override {
    Batch batch = eval_batch(first, count);
    std::tie(batch.features, batch.regression_targets) = rows_(first, count);
    return batch;
  }
  std::int64_t num_eval_sequences() const override { return 8; }
  Batch eval_batch(std::int64_t /*first*/, Index count) const override {
    Batch batch;
    batch.num_sequences = count;
    batch.seq_len = 1;
    batch.features = Matrix::Ones(count, 2);
    batch.regression_targets = Matrix::Ones(count, 2);
    batch.domain.assign(static_cast<std::size_t>(count), 0);
    return batch;
  }
  std::vector<DomainStatistics> statistics() const override { return {{"only", 0, 8, 0}}; }

 private:
  std::vector<std::string> names_{"only"};
  Rows rows_;
};

const MadeUp kOnes([](std::int64_t, Index count) {
  return std::pair(Matrix(Matrix::Ones(count, 2)), Matrix(Matrix::Ones(count, 2)));
});

struct Trained {
  RunData data;
  std::vector<std::string> notes;
  std::map<std::string, Matrix> parameters;
};

// `ffn` and the fields of `train`, as YAML; every step is logged. `prepare` sets parameters before the first.
Trained train(const Dataset& data, const std::string& ffn, const std::string& train_fields,
              const std::function<void(const std::string& path, MatrixView value)>& prepare = {}) {
  const TemporaryFolder folder;
  folder.write("e.yaml", fmt::format("version: 1\n"
                                     "data: {{kind: synthetic, num_features: 2, num_targets: 2}}\n"
                                     "model: {{kind: ffn, d_model: 2, num_layers: 1, ffn: {}}}\n"
                                     "train: {{optimizer: {{lr: 1e-3}}, {}}}\n"
                                     "log: {{every_steps: 1}}\n",
                                     ffn, train_fields));
  const Experiment experiment = load_experiment(folder.path() / "e.yaml", {});
  const Run& run = experiment.runs.front();
  const auto model = make_model(run.config.model, shape_of(data));
  RunInfo info;
  info.name = run.name;
  info.domains = data.domains();
  info.moe_layers = moe_layers(*model);
  Recorder recorder = Recorder::create(folder.path(), info);
  Trained trained;
  TrainerHooks hooks;
  hooks.note = [&](const std::string& text) { trained.notes.push_back(text); };
  Trainer trainer(run, *model, data, recorder, hooks);
  for (const NamedParameter& p : trainer.parameters().parameters()) {
    if (prepare) prepare(p.path, p.parameter->value());
    p.parameter->mark_changed();
  }
  REQUIRE(trainer.train() == RunStatus::done);
  for (const NamedParameter& p : trainer.parameters().parameters())
    trained.parameters[p.path] = p.parameter->value();
  trained.data = recorder.data();
  return trained;
}

constexpr const char* kDense = "{kind: dense, activation: relu, d_ff: 3}";

}  // namespace

// Logits (4, 0) in the first micro-batch, (0, 4) in the second: each is collapsed, E f P = 2 p with p =
// softmax(4, 0)[0], 1.964028. Over the step f is (1/2, 1/2) and the loss of each micro-batch 1.
TEST_CASE(
    "scope: global counts over the step: micro-batches that collapse to different experts have a loss of 1",
    "[trainer]") {
  const MadeUp data([](std::int64_t first, Index count) {
    Matrix features = Matrix::Zero(count, 2);
    for (Index t = 0; t < count; ++t) features(t, (first + t) / 4 % 2) = 4;
    return std::pair(features, features);
  });
  const auto first_loss = [&](const std::string& scope, const std::string& micro_batch) {
    const std::string ffn = fmt::format(
        "{{kind: moe, experts: {{kind: ffn, count: 2, activation: relu, d_ff: 2}}, router: {{kind: top_k, "
        "top_k: 1, normalize: false}}, losses: {{load_balance: {{weight: 0.01, scope: {}}}}}}}",
        scope);
    const Trained trained =
        train(data, ffn, "max_steps: 2, batch_tokens: 8, micro_batch_tokens: " + micro_batch,
              [](const std::string& path, MatrixView value) {
                if (path == "layers.0.ffn.router.weight") value.setIdentity();
              });
    const TrainRecord& record = trained.data.train.front();
    REQUIRE(record.auxiliary_losses.size() == 1);
    return record.auxiliary_losses[0].second;
  };
  CHECK_THAT(first_loss("global", "4"), WithinAbs(1, 1e-6));
  CHECK_THAT(first_loss("global", "8"), WithinAbs(1, 1e-6));  // the step is one batch: no pass is needed
  CHECK_THAT(first_loss("batch", "8"), WithinAbs(1, 1e-6));
  CHECK_THAT(first_loss("batch", "4"), WithinAbs(1.964028, 1e-6));
}

// 100 steps at a peak of 1e-3: step 46 is taken after 45.
TEST_CASE("the trainer's learning rate is that of the schedule in the config", "[trainer]") {
  const auto rates = [](const std::string& schedule) {
    const Trained trained =
        train(kOnes, kDense, fmt::format("max_steps: 100, batch_tokens: 4, schedule: {{{}}}", schedule));
    REQUIRE(trained.data.train.size() == 100);
    std::vector<double> lr;
    for (const TrainRecord& record : trained.data.train) {
      CHECK(record.step == static_cast<std::int64_t>(lr.size()) + 1);
      lr.push_back(record.lr);
    }
    return lr;
  };
  const std::vector<double> cosine = rates("kind: cosine, min_lr_ratio: 0");
  CHECK_THAT(cosine[0], WithinAbs(1e-3, 1e-12));
  CHECK_THAT(cosine[45], WithinAbs(5.782172e-4, 1e-10));
  CHECK_THAT(cosine[46], WithinAbs(5.626666e-4, 1e-10));
  CHECK_THAT(rates("kind: linear, min_lr_ratio: 0")[45], WithinAbs(5.5e-4, 1e-12));
  CHECK_THAT(rates("kind: linear, min_lr_ratio: 0.1")[45], WithinAbs(5.95e-4, 1e-12));
  CHECK_THAT(rates("kind: constant")[45], WithinAbs(1e-3, 1e-12));
  CHECK_THAT(rates("kind: constant, warmup_tokens: 200")[45], WithinAbs(9e-4, 1e-12));  // 45 of 50 steps
  const std::vector<double> wsd = rates("kind: wsd, decay_tokens: 240, min_lr_ratio: 0");
  CHECK_THAT(wsd[40], WithinAbs(1e-3, 1e-12));  // the last 60 steps decay
  CHECK_THAT(wsd[45], WithinAbs(1e-3 * 55 / 60, 1e-12));
}

// Hidden values near 1e21 times an error of 1e18 are beyond float32, though the loss, 1e36, is not: the
// output matrix is 0, so the prediction is 0.
TEST_CASE("a step whose gradient is infinite, from data and a loss that are finite, is left out",
          "[trainer][non_finite]") {
  const MadeUp data([](std::int64_t first, Index count) {
    const bool huge = first < 4;
    return std::pair(Matrix(Matrix::Constant(count, 2, huge ? 1e21F : 1.0F)),
                     Matrix(Matrix::Constant(count, 2, huge ? 1e18F : 1.0F)));
  });
  std::map<std::string, Matrix> before;
  const auto prepare = [&](const std::string& path, MatrixView value) {
    value.setConstant(path.ends_with("w2") ? 0.0F : 1.0F);
    before[path] = value;
  };
  const Trained one = train(data, kDense, "max_steps: 1, batch_tokens: 4, non_finite: skip", prepare);
  REQUIRE(one.notes.size() == 1);
  CHECK_THAT(one.notes[0],
             Contains("skipped: step 1: ") && Contains("gradient") && Contains("layers.0.ffn.w2"));
  CHECK(one.data.train.empty());
  CHECK(one.parameters == before);

  const Trained three = train(data, kDense, "max_steps: 3, batch_tokens: 4, non_finite: skip", prepare);
  CHECK(three.notes.size() == 1);
  REQUIRE(three.data.train.size() == 2);
  CHECK(three.data.train[0].step == 2);
  CHECK(std::isfinite(three.data.train[1].loss));
  CHECK(three.parameters != before);
}

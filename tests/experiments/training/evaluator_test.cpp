// An evaluation of losses that are given.
#include "experiments/training/evaluator.hpp"

#include "core/error.hpp"
#include "experiments/config/experiment.hpp"
#include "experiments/data/make_dataset.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <limits>
#include <set>

using namespace moelab;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Says the losses that it was given, whatever the batch, and remembers the contexts.
class SaysLosses final : public Model {
 public:
  SaysLosses(std::vector<double> losses, Index num_counted, bool targets_are_inputs = false)
      : losses_(std::move(losses)), num_counted_(num_counted), targets_are_inputs_(targets_are_inputs) {}
  ModelOutput forward(const Batch& /*batch*/, const ForwardContext& context) override {
    contexts.push_back(context);
    ModelOutput output;
    output.target_losses = losses_;
    output.num_counted = num_counted_;
    output.targets_are_inputs = targets_are_inputs_;
    return output;
  }
  std::vector<moe::FfnBlock*> ffn_blocks() override { return {}; }
  void visit(Visitor& /*visitor*/) override {}

  std::vector<ForwardContext> contexts;

 private:
  std::vector<double> losses_;
  Index num_counted_;
  bool targets_are_inputs_;
};

// Sequences of the tokens 1 to 4, of one domain, each followed by the token 5; a token has as many bytes.
class Sequences final : public Dataset {
 public:
  explicit Sequences(std::int64_t num_sequences) : num_sequences_(num_sequences) {}
  const std::vector<std::string>& domains() const override { return names_; }
  Index seq_len() const override { return 4; }
  Batch train_batch(std::uint64_t /*seed*/, std::int64_t first, Index count) const override {
    return eval_batch(first, count);
  }
  std::int64_t num_eval_sequences() const override { return num_sequences_; }
  Batch eval_batch(std::int64_t /*first*/, Index count) const override {
    Batch batch;
    batch.num_sequences = count;
    batch.seq_len = 4;
    for (Index b = 0; b < count; ++b) {
      for (const std::int32_t id : {1, 2, 3, 4}) batch.inputs.push_back(id);
      for (int t = 0; t < 4; ++t) batch.targets.push_back(5);
    }
    batch.domain.assign(static_cast<std::size_t>(count), 0);
    return batch;
  }
  Index token_bytes(std::int32_t id) const override { return id; }
  std::vector<DomainStatistics> statistics() const override { return {{"only", 0, 4, 0}}; }

 private:
  std::vector<std::string> names_{"only"};
  std::int64_t num_sequences_;
};

Evaluation evaluated(const std::vector<double>& losses, Index num_counted) {
  SaysLosses model(losses, num_counted);
  ForwardContext context;
  context.step = 7;
  return evaluate(model, Sequences(1), {}, context);
}

}  // namespace

TEST_CASE("an evaluation with a loss that is not finite has no mean", "[evaluator]") {
  CHECK_THROWS_AS(evaluated({1, kNaN, 2, 3}, 4), NonFiniteError);
  CHECK_THROWS_WITH(evaluated({1, kNaN, 2, 3}, 4), Contains("step 7") && Contains("1 of 4 targets"));
  CHECK_THROWS_AS(evaluated({kNaN, kNaN, kNaN, kNaN}, 4), NonFiniteError);
  CHECK_THROWS_WITH(evaluated({kNaN, kNaN, kNaN, kNaN}, 3), Contains("3 of 3 targets"));
  CHECK_THROWS_AS(evaluated({1, kInfinity, 2, 3}, 4), NonFiniteError);
  CHECK_THROWS_AS(evaluated({1, -kInfinity, kNaN, 3}, 3), NonFiniteError);
}

TEST_CASE("targets that do not count are left out of an evaluation", "[evaluator]") {
  const Evaluation evaluation = evaluated({1, kNaN, 2, 3}, 3);
  CHECK(evaluation.loss == 2);
  CHECK(evaluation.num_counted == 3);
  CHECK_THROWS_WITH(evaluated({kNaN, kNaN, kNaN, kNaN}, 0), Contains("no target of 1 sequences counts"));
}

TEST_CASE("bytes are those of the targets: the next tokens, or the masked ones themselves", "[evaluator]") {
  CHECK(evaluated({1, kNaN, 2, 3}, 3).bytes_per_token == 5);
  SaysLosses masked({kNaN, 1, kNaN, 1}, 2, true);
  CHECK(evaluate(masked, Sequences(1), {}, {}).bytes_per_token == 3);  // of tokens 2 and 4
}

TEST_CASE("each batch of an evaluation draws numbers of its own, whether more follow or not", "[evaluator]") {
  const auto drawn = [](std::int64_t num_sequences, std::uint64_t step) {
    SaysLosses model({1, 2, 3, 4}, 4);
    ForwardContext context;
    context.step = step;
    context.num_micro_batches = 3;  // of training: of no account here
    evaluate(model, Sequences(num_sequences), {}, context);
    std::vector<std::uint64_t> numbers;
    for (const ForwardContext& c : model.contexts) numbers.push_back(c.stream("random/layers.0").bits(0));
    return numbers;
  };
  const std::vector<std::uint64_t> first = drawn(5, 7), shorter = drawn(3, 7), later = drawn(5, 8);
  std::set<std::uint64_t> different(first.begin(), first.end());
  different.insert(later.begin(), later.end());
  CHECK(different.size() == 10);
  CHECK(shorter == std::vector<std::uint64_t>(first.begin(), first.begin() + 3));
}

TEST_CASE("a run whose held-out losses overflow is diverged, not done with the mean of the others",
          "[evaluator]") {
  const TemporaryFolder folder;
  folder.write(
      "e.yaml",
      "version: 1\n"
      "data: {kind: synthetic, num_features: 4, num_targets: 4}\n"
      "model: {kind: ffn, d_model: 4, num_layers: 2, ffn: {kind: dense, activation: silu, d_ff: 2}}\n"
      "train: {max_steps: 1, batch_tokens: 64, grad_clip: null, schedule: {kind: constant}}\n");
  for (const std::string lr : {"1e13", "1e17"}) {
    INFO(lr);
    LoadOptions options;
    options.overrides = {"train.optimizer.lr=" + lr};
    const Experiment experiment = load_experiment(folder.path() / "e.yaml", options);
    const auto data = make_dataset(experiment.runs.front().config.data);
    const std::filesystem::path run = folder.path() / lr;
    std::filesystem::create_directories(run);
    const RunResult result = run_one(experiment.runs.front(), {*data, run, {}, {}});
    INFO(result.reason);
    CHECK(result.status == RunStatus::diverged);
    CHECK(result.reason.starts_with("step 1: in the evaluation: "));
    CHECK(recover_run(run).eval.empty());
  }
}

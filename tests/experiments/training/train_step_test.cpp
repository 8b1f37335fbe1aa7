// One step's losses over several layers, by hand.
#include "experiments/training/train_step.hpp"

#include "core/error.hpp"
#include "experiments/models/make_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_yaml.hpp"

#include <cmath>

using namespace moelab;

namespace {

// A layer with two copy experts of which one is chosen: its output is the weight of the choice times its
// input.
std::string layers_yaml(int num_layers, const std::string& losses) {
  return fmt::format(
      "{{kind: ffn, d_model: 2, num_layers: {}, ffn: {{kind: moe, experts: {{kind: copy, count: 2}}, router: "
      "{{kind: top_k, top_k: 1, normalize: false}}, losses: {{{}}}}}}}",
      num_layers, losses);
}

Batch four_rows() {
  Batch batch;
  batch.num_sequences = 1;
  batch.seq_len = 4;
  batch.features = Matrix::Zero(4, 2);
  batch.features.col(0).setConstant(4);
  batch.regression_targets = Matrix::Zero(4, 2);
  return batch;
}

double value_of(const StepResult& result, const std::string& name) {
  for (const auto& [loss, value] : result.auxiliary_losses) {
    if (loss == name) return value;
  }
  throw Error("no loss " + name);
}

}  // namespace

// Logits (4, 0) in every row of the first layer and (0, 4) of the second: each layer is collapsed, E f P = 2
// p with p = softmax(4, 0)[0]. Put together before f and P are formed they would look balanced, with a loss
// of 1.
TEST_CASE("layers that collapse to different experts: the mean of their losses is 1.964028, not 1",
          "[train_step]") {
  const auto model = make_model(test::model_config(layers_yaml(2, "load_balance: 0.01")),
                                {.seq_len = 4, .num_features = 2, .num_targets = 2});
  ParameterStore store(*model, 1);
  const double p = 1 / (1 + std::exp(-4.0));
  for (const NamedParameter& parameter : store.parameters()) {
    MatrixView w = parameter.parameter->value();
    if (parameter.path == "layers.0.ffn.router.weight") w << 1, 0, 0, 1;
    if (parameter.path == "layers.1.ffn.router.weight") w << 0, 0, 1 / p, 0;  // its input is p (4, 0)
    parameter.parameter->mark_changed();
  }
  const StepResult result = forward_backward(*model, {four_rows()}, {});
  REQUIRE(result.routing.size() == 2);
  CHECK(expert_tokens(result.routing[0]) == std::vector<std::int64_t>{4, 0});
  CHECK(expert_tokens(result.routing[1]) == std::vector<std::int64_t>{0, 4});
  CHECK_THAT(value_of(result, "load_balance"), WithinAbs(1.964028, 1e-6));
}

TEST_CASE("a loss does not grow with the number of layers or of micro-batches", "[train_step]") {
  for (const int num_layers : {1, 2, 5}) {
    const auto model = make_model(test::model_config(layers_yaml(num_layers, "load_balance: 0.01, z: 0.001")),
                                  {.seq_len = 4, .num_features = 2, .num_targets = 2});
    ParameterStore store(*model, 1);
    store.values().setZero();  // every logit is 0: ties to expert 0, P = (1/2, 1/2)
    for (const std::size_t micro_batches : {1, 3}) {
      const StepResult result = forward_backward(*model, std::vector<Batch>(micro_batches, four_rows()), {});
      CHECK_THAT(value_of(result, "load_balance"), WithinAbs(1, 1e-12));
      CHECK_THAT(value_of(result, "z"), WithinAbs(std::log(2.0) * std::log(2.0), 1e-12));
    }
  }
}

TEST_CASE("a layer without a loss does not thin out that of the others", "[train_step]") {
  const auto model = make_model(
      test::model_config(
          "{kind: ffn, d_model: 2, num_layers: 3, ffn: {kind: dense, activation: relu, d_ff: 2}, "
          "layers: [{at: [1], ffn: {kind: moe, experts: {kind: copy, count: 2}, router: {kind: top_k, "
          "top_k: 1, normalize: false}, losses: {load_balance: 1}}}]}"),
      {.seq_len = 4, .num_features = 2, .num_targets = 2});
  ParameterStore store(*model, 1);
  store.values().setZero();
  CHECK_THAT(value_of(forward_backward(*model, {four_rows()}, {}), "load_balance"), WithinAbs(1, 1e-12));
}

// One step's losses over several layers, by hand.
#include "experiments/training/train_step.hpp"

#include "core/error.hpp"
#include "experiments/models/make_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_yaml.hpp"

#include <cmath>
#include <map>

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

namespace {

// What a step's gradient is of, from the definition: the mean over the micro-batches of the task loss and,
// for each name, the mean over the layers that have it of weight times value.
double objective(Model& model, const std::vector<Batch>& micro_batches) {
  double sum = 0;
  for (const Batch& batch : micro_batches) {
    const ModelOutput output = model.forward(batch, {.training = true});
    sum += output.loss.item();
    std::map<std::string, std::vector<double>> terms;
    for (const moe::FfnOutput& layer : output.ffn) {
      for (const moe::AuxiliaryLoss& loss : layer.losses)
        terms[loss.name].push_back(loss.weight * loss.value.item());
    }
    for (const auto& [name, values] : terms) {
      double total = 0;
      for (const double value : values) total += value;
      sum += total / static_cast<double>(values.size());
    }
  }
  return sum / static_cast<double>(micro_batches.size());
}

}  // namespace

TEST_CASE("the gradient of a step is that of the mean task loss and the mean of each weighted loss",
          "[train_step][gradient]") {
  const auto mixture = [](const char* losses) {
    return fmt::format(
        "{{kind: moe, experts: {{kind: ffn, count: 3, activation: gelu, d_ff: 3}}, "
        "router: {{kind: top_k, top_k: 2}}, losses: {{{}}}}}",
        losses);
  };
  // Three layers of load_balance, two of z, each with a weight of its own.
  const auto model = make_model(
      test::model_config(fmt::format(
          "{{kind: ffn, d_model: 4, num_layers: 3, residual: true, ffn: {}, layers: [{{at: [1], ffn: {}}}, "
          "{{at: [2], ffn: {}}}]}}",
          mixture("load_balance: 0.5, z: 0.3"), mixture("load_balance: 2"),
          mixture("load_balance: 1, z: 0.7"))),
      {.seq_len = 6, .num_features = 4, .num_targets = 4});
  ParameterStore store(*model, 1);
  test::randomise_parameters(*model);
  std::vector<Batch> micro_batches(2);
  for (unsigned i = 0; i < 2; ++i) {
    micro_batches[i].num_sequences = 1;
    micro_batches[i].seq_len = 6;
    micro_batches[i].features = test::random_matrix(6, 4, 10 + i);
    micro_batches[i].regression_targets = test::random_matrix(6, 4, 20 + i);
  }
  store.zero_grads();
  const StepResult result = forward_backward(*model, micro_batches, {});
  REQUIRE(result.auxiliary_losses.size() == 2);
  int num_routers = 0;
  for (const NamedParameter& p : store.parameters()) {
    if (!p.path.ends_with("router.weight")) continue;
    ++num_routers;
    MatrixView w = p.parameter->value();
    const Matrix gradient = p.parameter->grad();
    for (Index i = 0; i < w.rows(); ++i) {
      for (Index j = 0; j < w.cols(); ++j) {
        INFO(p.path << " at " << i << ", " << j);
        constexpr double step = 1e-5;
        const double value = w(i, j);
        const auto at = [&](double moved) {
          w(i, j) = moved;
          p.parameter->mark_changed();
          return objective(*model, micro_batches);
        };
        const double difference = (at(value + step) - at(value - step)) / (2 * step);
        at(value);
        CHECK_THAT(gradient(i, j), WithinAbs(difference, 1e-8));
      }
    }
  }
  CHECK(num_routers == 3);
}

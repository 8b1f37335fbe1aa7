// The mean over a sequence of a classifier, by hand.
#include "experiments/models/classifier.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_yaml.hpp"

#include <cmath>
#include <limits>

using namespace moelab;

namespace {

ModelConfig config_of(const std::string& ffn) {
  return test::model_config(fmt::format(
      "{{kind: encoder, d_model: 2, num_layers: 1, num_heads: 1, position: none, norm_eps: 1e-12, ffn: {}}}",
      ffn));
}

constexpr const char* kDense = "{kind: dense, activation: gelu, d_ff: 3}";

// Two sequences of four rows: two of the first are real, all of the second.
Batch padded() {
  Batch batch;
  batch.num_sequences = 2;
  batch.seq_len = 4;
  batch.features = test::random_matrix(8, 2, 3);
  batch.features.row(0) << 3, 4;
  batch.features.row(2) << 4, -3;
  batch.is_real = {1, 0, 1, 0, 1, 1, 1, 1};
  batch.targets = {0, 1};
  return batch;
}

}  // namespace

// Layers that add nothing, and maps that change nothing: the logits are the mean of the rows after the root
// mean square norm, that is (3, 4) and (4, -3), each over 5 / sqrt(2): (7, 1) sqrt(2) / 10.
TEST_CASE("a classifier takes the mean over the real rows", "[models]") {
  Classifier model(config_of(kDense), 2, 2, 4);
  ParameterStore store(model, 1);
  store.values().setZero();
  for (const NamedParameter& p : parameters(model)) {
    if (p.path == "patch.w" || p.path == "head.w") p.parameter->value().setIdentity();
    if (p.path == "final_norm.g") p.parameter->value().setOnes();
    p.parameter->mark_changed();
  }
  const ModelOutput output = model.forward(padded(), {});
  CHECK_THAT(output.target_losses[0], WithinAbs(std::log1p(std::exp(-0.6 * std::sqrt(2.0))), 1e-9));
}

TEST_CASE("padding of a classifier changes nothing, whatever stands there", "[models][gradient]") {
  for (const char* ffn : {kDense,
                          "{kind: moe, experts: {count: 3, activation: gelu, d_ff: 4}, router: {kind: "
                          "top_k, top_k: 2}}"}) {
    INFO(ffn);
    Classifier model(config_of(ffn), 2, 2, 4);
    ParameterStore store(model, 1);
    test::randomise_parameters(model);
    Batch batch = padded();
    const ModelOutput before = model.forward(batch, {});
    // The same rows without padding, one sequence after the other.
    Batch two;
    two.num_sequences = 1;
    two.seq_len = 2;
    two.features.resize(2, 2);
    two.features << 3, 4, 4, -3;
    two.targets = {0};
    CHECK_THAT(model.forward(two, {}).target_losses[0], WithinAbs(before.target_losses[0], 1e-12));
    batch.features.row(1) *= 100;
    batch.features.row(3) *= -100;
    CHECK(model.forward(batch, {}).target_losses == before.target_losses);
    for (const Index row : {1, 3})
      batch.features.row(row).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
    CHECK(model.forward(batch, {}).target_losses == before.target_losses);
    CHECK(test::gradient_mismatch(
              [&](const std::vector<Variable>&) {
                return model.forward(batch, {.training = true, .record = true, .seed = 3}).loss;
              },
              {}, model) == "");
  }
}

TEST_CASE("a sequence of padding only has no class", "[models]") {
  Classifier model(config_of(kDense), 2, 2, 4);
  ParameterStore store(model, 1);
  Batch batch = padded();
  std::fill(batch.is_real.begin() + 4, batch.is_real.end(), 0);
  CHECK_THROWS_WITH(model.forward(batch, {}), Contains("[classifier] sequence 1 of 2 is padding only"));
}

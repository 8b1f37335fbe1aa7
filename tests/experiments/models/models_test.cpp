#include "core/parallel.hpp"
#include "experiments/models/classifier.hpp"
#include "experiments/models/decoder.hpp"
#include "experiments/models/encoder.hpp"
#include "experiments/models/ffn_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_yaml.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace moelab;
using test::model_config;
using test::random_matrix;
using test::token_batch;

namespace {

const ForwardContext kTraining{.training = true, .record = true, .seed = 3};
const ForwardContext kEvaluation{};

constexpr Index kVocab = 7, kSeqLen = 4;

std::string decoder_yaml(const std::string& more) {
  return "{kind: decoder, d_model: 8, num_layers: 2, num_heads: 2, ffn: {kind: dense, activation: swiglu, "
         "d_ff: 5}" +
         more + "}";
}

std::set<std::string> paths(Module& module) {
  std::set<std::string> result;
  for (const NamedParameter& p : parameters(module)) result.insert(p.path);
  return result;
}

// The loss as a function of the parameters alone, for the gradient check.
test::Function loss_of(Model& model, const Batch& batch) {
  return [&model, &batch](const std::vector<Variable>&) { return model.forward(batch, kTraining).loss; };
}

double mean_of_counted(const ModelOutput& output) {
  double sum = 0;
  Index count = 0;
  for (const double loss : output.target_losses) {
    if (std::isnan(loss)) continue;
    sum += loss;
    ++count;
  }
  REQUIRE(count == output.num_counted);
  return sum / double(count);
}

}  // namespace

TEST_CASE("a decoder names its parameters", "[models]") {
  Decoder pre(model_config(decoder_yaml("")), kVocab, kSeqLen);
  std::set<std::string> expected{"embed", "final_norm.g"};
  for (const char* layer : {"layers.0.", "layers.1."}) {
    for (const char* name :
         {"norm1.g", "attn.wq", "attn.wk", "attn.wv", "attn.wo", "norm2.g", "ffn.w1", "ffn.w2", "ffn.w3"}) {
      expected.insert(std::string(layer) + name);
    }
  }
  CHECK(paths(pre) == expected);

  Decoder post(model_config(decoder_yaml(
                   ", norm_position: post, norm: layer, position: learned, tie_embeddings: false, "
                   "attention_bias: true")),
               kVocab, kSeqLen);
  const std::set<std::string> found = paths(post);
  CHECK(found.count("final_norm.g") == 0);
  for (const char* name : {"embed", "position", "head", "layers.1.norm2.b", "layers.0.attn.bo"}) {
    INFO(name);
    CHECK(found.count(name) == 1);
  }
}

TEST_CASE("the parameters of a decoder add up as by hand", "[models]") {
  // Table 7 x 8; a layer: 4 x 8^2 of attention, 3 x 8 x 5 of the FFN, two gains; the final gain.
  Decoder decoder(model_config(decoder_yaml("")), kVocab, kSeqLen);
  CHECK(count_parameters(decoder) == 7 * 8 + 2 * (4 * 64 + 3 * 40 + 16) + 8);
  // Keys and values of one head out of two; a head of its own; positions.
  Decoder other(model_config(decoder_yaml(", num_kv_heads: 1, tie_embeddings: false, position: learned")),
                kVocab, kSeqLen);
  CHECK(count_parameters(other) == 2 * 7 * 8 + 4 * 8 + 2 * (3 * 64 + 3 * 40 + 16) + 8);
}

TEST_CASE("gradients of whole decoders agree with differences", "[models][gradient]") {
  const Batch batch = token_batch(2, kSeqLen, kVocab);
  for (const char* more :
       {"", ", num_kv_heads: 1, norm: layer, attention_bias: true, tie_embeddings: false, position: learned",
        ", norm_position: post, norm: layer, position: sinusoidal", ", dropout: 0.2, position: none",
        ", layers: [{at: [1], ffn: {kind: moe, experts: {kind: ffn, count: 3, activation: relu, d_ff: 4}, "
        "router: {kind: "
        "top_k, top_k: 2}}}]"}) {
    INFO(more);
    Decoder decoder(model_config(decoder_yaml(more)), kVocab, kSeqLen);
    ParameterStore store(decoder, 1);
    test::randomise_parameters(decoder, 0.4);
    CHECK(test::gradient_mismatch(loss_of(decoder, batch), {}, decoder, {.max_entries = 12}) == "");
  }
}

TEST_CASE("a decoder does not look ahead", "[models][causality]") {
  for (const char* more :
       {"", ", norm_position: post", ", position: learned", ", position: sinusoidal, num_kv_heads: 1"}) {
    INFO(more);
    Decoder decoder(model_config(decoder_yaml(more)), kVocab, 6);
    ParameterStore store(decoder, 1);
    test::randomise_parameters(decoder);
    Batch batch = token_batch(2, 6, kVocab);
    const Matrix before = decoder.logits(batch, kEvaluation).value();
    batch.inputs[3] = (batch.inputs[3] + 1) % kVocab;  // of the first sequence
    const Matrix after = decoder.logits(batch, kEvaluation).value();
    CHECK(before.topRows(3) == after.topRows(3));
    for (Index t = 3; t < 6; ++t) CHECK_FALSE(before.row(t) == after.row(t));
    CHECK(before.bottomRows(6) == after.bottomRows(6));
  }
}

TEST_CASE("without positions one layer sees a set, with positions an order", "[models]") {
  for (const auto& [position, ordered] :
       {std::pair{"none", false}, {"rope", true}, {"learned", true}, {"sinusoidal", true}}) {
    INFO(position);
    ModelConfig config = model_config(decoder_yaml(fmt::format(", position: {}", position)));
    config.num_layers = 1;  // a second one sees by the causal mask which token came first
    Decoder decoder(config, kVocab, 3);
    ParameterStore store(decoder, 1);
    test::randomise_parameters(decoder);
    Batch batch = token_batch(1, 3, kVocab);
    batch.inputs = {1, 2, 5};
    const Matrix before = decoder.logits(batch, kEvaluation).value();
    batch.inputs = {2, 1, 5};
    const Matrix after = decoder.logits(batch, kEvaluation).value();
    CHECK(((before.row(2) - after.row(2)).cwiseAbs().maxCoeff() > 1e-6) == ordered);
  }
}

TEST_CASE("the loss of a decoder is the mean over its counted targets", "[models]") {
  Decoder decoder(model_config(decoder_yaml("")), kVocab, kSeqLen);
  ParameterStore store(decoder, 1);
  Batch batch = token_batch(2, kSeqLen, kVocab);
  const ModelOutput output = decoder.forward(batch, kEvaluation);
  CHECK(output.num_counted == 2 * (kSeqLen - 1));
  CHECK_THAT(output.loss.item(), WithinAbs(mean_of_counted(output), 1e-14));
  // Small initial weights: every token is about as likely.
  CHECK(std::abs(output.loss.item() - std::log(double(kVocab))) < 0.05);
  CHECK(output.ffn.size() == 2);
  CHECK_FALSE(output.ffn[0].y.defined());
  batch.targets.assign(batch.targets.size(), kIgnoredTarget);
  CHECK(decoder.forward(batch, kEvaluation).loss.item() == 0);
  CHECK_THROWS_WITH(decoder.forward(token_batch(1, kSeqLen + 1, kVocab), kEvaluation), Contains("at most 4"));
}

TEST_CASE("layers may have FFNs of their own", "[models]") {
  const ModelConfig config =
      model_config(decoder_yaml(", layers: [{at: [-1], ffn: {kind: moe, experts: {kind: ffn, count: 4, "
                                "activation: relu, d_ff: 4}, router: {kind: "
                                "top_k, top_k: 2}}}]"));
  Decoder decoder(config, kVocab, kSeqLen);
  const auto blocks = decoder.ffn_blocks();
  CHECK(blocks[0]->num_experts() == 0);
  CHECK(blocks[1]->num_experts() == 4);
  ParameterStore store(decoder, 1);
  const ModelOutput output = decoder.forward(token_batch(1, kSeqLen, kVocab), kTraining);
  CHECK_FALSE(output.ffn[0].routing.has_value());
  CHECK(output.ffn[1].routing->num_experts == 4);
}

TEST_CASE("training steps have the same bits at any number of threads", "[models][threads]") {
  const Batch batch = token_batch(5, 70, kVocab);
  std::vector<Matrix> gradients;
  for (const int threads : {1, 2, 3, 8}) {
    parallel::set_threads(threads);
    Decoder decoder(model_config(decoder_yaml(", dropout: 0.1")), kVocab, 70);
    ParameterStore store(decoder, 1);
    backward(decoder.forward(batch, kTraining).loss);
    gradients.emplace_back(store.grads());
  }
  parallel::set_threads(0);
  for (const Matrix& g : gradients) CHECK(g == gradients[0]);
}

TEST_CASE("an encoder looks both ways and learns from the tokens that were masked", "[models]") {
  const std::string yaml =
      "{kind: encoder, d_model: 8, num_layers: 1, num_heads: 2, mask_fraction: 0.3, norm: layer, "
      "norm_position: post, "
      "position: learned, ffn: {kind: dense, activation: relu, d_ff: 8, bias: true}}";
  Encoder encoder(model_config(yaml), kVocab, 50);
  ParameterStore store(encoder, 1);
  test::randomise_parameters(encoder);
  CHECK(encoder.ffn_blocks().size() == 1);
  const Batch batch = token_batch(8, 50, kVocab);
  const ModelOutput output = encoder.forward(batch, kTraining);
  CHECK_THAT(output.loss.item(), WithinAbs(mean_of_counted(output), 1e-13));
  CHECK(output.targets_are_inputs);
  // 400 tokens: five standard deviations around 120.
  CHECK(std::abs(double(output.num_counted) - 120) < 5 * std::sqrt(400 * 0.3 * 0.7));
  ForwardContext next = kTraining;
  next.step = 1;
  CHECK_FALSE(encoder.forward(batch, next).loss.item() == output.loss.item());

  // In evaluation the same, whatever the step and whatever is evaluated together.
  const ModelOutput all = encoder.forward(batch, kEvaluation);
  Batch last = batch;
  last.num_sequences = 1;
  last.inputs.assign(batch.inputs.end() - 50, batch.inputs.end());
  const ModelOutput one = encoder.forward(last, kEvaluation);
  for (std::size_t t = 0; t < 50; ++t) {
    const double a = all.target_losses[350 + t], b = one.target_losses[t];
    REQUIRE(std::isnan(a) == std::isnan(b));
    if (!std::isnan(a)) CHECK_THAT(a, WithinAbs(b, 1e-12));
  }

  // A change at the end is seen at the start.
  const auto first_counted = [](const ModelOutput& o) {
    std::size_t t = 0;
    while (std::isnan(o.target_losses[t])) ++t;
    return o.target_losses[t];
  };
  Batch padded = last;
  padded.is_real.assign(50, 1);
  padded.is_real[49] = 0;
  CHECK(std::abs(first_counted(encoder.forward(padded, kEvaluation)) - first_counted(one)) > 1e-9);
}

TEST_CASE("the mask of an encoder has the asked rate at every place, and the loss is there alone",
          "[models]") {
  for (const double fraction : {0.15, 0.5, 1.0}) {
    INFO(fraction);
    Encoder encoder(
        model_config(fmt::format("{{kind: encoder, d_model: 4, num_layers: 1, num_heads: 1, "
                                 "mask_fraction: {}, ffn: {{kind: dense, activation: relu, d_ff: 2}}}}",
                                 fraction)),
        kVocab, 8);
    ParameterStore store(encoder, 1);
    test::randomise_parameters(encoder);
    Batch batch = token_batch(250, 8, kVocab);
    for (const ForwardContext& context : {kTraining, kEvaluation}) {
      const ModelOutput output = encoder.forward(batch, context);
      std::vector<int> counts(8, 0);
      for (std::size_t n = 0; n < output.target_losses.size(); ++n) {
        if (!std::isnan(output.target_losses[n])) ++counts[n % 8];
      }
      CHECK(std::accumulate(counts.begin(), counts.end(), 0) == output.num_counted);
      for (const int count : counts) {
        CHECK(std::abs(count - 250 * fraction) <= 5 * std::sqrt(250 * fraction * (1 - fraction)));
      }
    }
    // What is to be filled in is the token itself: the targets of a decoder play no part.
    const double loss = encoder.forward(batch, kTraining).loss.item();
    batch.targets.assign(batch.targets.size(), kIgnoredTarget);
    CHECK(encoder.forward(batch, kTraining).loss.item() == loss);
  }
}

TEST_CASE("a masked token is not seen, all others are", "[models]") {
  Encoder encoder(model_config("{kind: encoder, d_model: 8, num_layers: 2, num_heads: 2, mask_fraction: 0.5, "
                               "tie_embeddings: false, ffn: {kind: dense, activation: relu, d_ff: 8}}"),
                  kVocab, 12);
  ParameterStore store(encoder, 1);
  test::randomise_parameters(encoder);
  Batch batch = token_batch(1, 12, kVocab);
  const ModelOutput before = encoder.forward(batch, kTraining);
  for (std::size_t n = 0; n < 12; ++n) {
    const bool is_masked = !std::isnan(before.target_losses[n]);
    Batch other = batch;
    other.inputs[n] = (other.inputs[n] + 1) % static_cast<std::int32_t>(kVocab);
    const ModelOutput after = encoder.forward(other, kTraining);  // the same places are masked
    double change_elsewhere = 0;
    for (std::size_t m = 0; m < 12; ++m) {
      REQUIRE(std::isnan(after.target_losses[m]) == std::isnan(before.target_losses[m]));
      if (m == n || std::isnan(before.target_losses[m])) continue;
      change_elsewhere =
          std::max(change_elsewhere, std::abs(after.target_losses[m] - before.target_losses[m]));
    }
    INFO("place " << n << (is_masked ? ", masked" : ""));
    CHECK((change_elsewhere == 0) == is_masked);
  }
}

TEST_CASE("a classifier has one loss a sequence, the right gradients, and tells what is right",
          "[models][gradient]") {
  Batch batch;
  batch.num_sequences = 5;
  batch.seq_len = 4;
  batch.features = random_matrix(20, 3, 5);
  batch.targets = {2, 0, 1, 1, 2};
  for (const char* ffn :
       {"{kind: dense, activation: gelu, d_ff: 6}",
        "{kind: moe, experts: {count: 3, activation: gelu, d_ff: 4}, router: {kind: "
        "expert_choice, top_k: 1}}",
        "{kind: moe, experts: {count: 2, activation: gelu, d_ff: 4}, router: {kind: soft}}"}) {
    INFO(ffn);
    const ModelConfig config = model_config(fmt::format(
        "{{kind: encoder, d_model: 4, num_layers: 1, num_heads: 2, position: learned, ffn: {}}}", ffn));
    Classifier model(config, 3, 3, 4);
    ParameterStore store(model, 1);
    test::randomise_parameters(model);
    CHECK(paths(model).count("patch.w") == 1);
    CHECK(paths(model).count("head.b") == 1);
    const ModelOutput output = model.forward(batch, kTraining);
    CHECK(output.num_counted == 5);
    CHECK(output.target_losses.size() == 5);
    CHECK_THAT(output.loss.item(), WithinAbs(mean_of_counted(output), 1e-13));
    for (std::size_t b = 0; b < 5; ++b) {
      // A probability above a half is the best of three, one below a third is not.
      if (output.target_losses[b] < std::log(2.0)) CHECK(output.correct[b] == 1);
      if (output.target_losses[b] > std::log(3.0)) CHECK(output.correct[b] == 0);
    }
    CHECK(test::gradient_mismatch(loss_of(model, batch), {}, model) == "");
    // Sequences do not see each other.
    Batch other = batch;
    other.features.bottomRows(4) *= 2;
    const ModelOutput changed = model.forward(other, kEvaluation);
    const ModelOutput same = model.forward(batch, kEvaluation);
    for (std::size_t b = 0; b < 4; ++b) CHECK(changed.target_losses[b] == same.target_losses[b]);
    CHECK(changed.target_losses[4] != same.target_losses[4]);
  }
}

TEST_CASE("a padded token of an encoder changes nothing", "[models]") {
  const std::string yaml =
      "{kind: encoder, d_model: 8, num_layers: 2, num_heads: 2, mask_fraction: 0.5, position: learned, ffn: "
      "{kind: dense, "
      "activation: relu, d_ff: 8}}";
  Encoder encoder(model_config(yaml), kVocab, 10);
  ParameterStore store(encoder, 1);
  test::randomise_parameters(encoder);
  Batch batch = token_batch(1, 10, kVocab);
  batch.is_real.assign(10, 1);
  batch.is_real[8] = batch.is_real[9] = 0;
  const ModelOutput before = encoder.forward(batch, kTraining);
  batch.inputs[9] = (batch.inputs[9] + 1) % kVocab;
  const ModelOutput after = encoder.forward(batch, kTraining);
  REQUIRE(before.num_counted > 0);
  CHECK(before.loss.item() == after.loss.item());
  CHECK(std::isnan(before.target_losses[9]));
}

TEST_CASE("an FFN model maps features to targets", "[models][gradient]") {
  Batch batch;
  batch.num_sequences = 2;
  batch.seq_len = 3;
  batch.features = random_matrix(6, 5, 1);
  batch.regression_targets = random_matrix(6, 2, 2);
  batch.is_real = {1, 1, 0, 1, 1, 1};
  for (const char* residual : {"true", "false"}) {
    const ModelConfig config =
        model_config(fmt::format("{{kind: ffn, d_model: 4, num_layers: 2, residual: {}, ffn: {{kind: dense, "
                                 "activation: gelu, d_ff: 6, bias: true}}}}",
                                 residual));
    FfnModel model(config, 5, 2);
    CHECK(paths(model).count("in.w") == 1);
    CHECK(paths(model).count("layers.1.ffn.w2") == 1);
    ParameterStore store(model, 1);
    test::randomise_parameters(model);
    const ModelOutput output = model.forward(batch, kTraining);
    CHECK(output.num_counted == 5);
    CHECK_THAT(output.loss.item(), WithinAbs(mean_of_counted(output), 1e-13));
    CHECK(test::gradient_mismatch(loss_of(model, batch), {}, model) == "");
    Batch anything = batch;
    anything.features.row(2).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
    anything.regression_targets.row(2).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
    CHECK(model.forward(anything, kTraining).loss.item() == output.loss.item());
    CHECK(test::gradient_mismatch(loss_of(model, anything), {}, model) == "");

    FfnModel square(config, 4, 4);  // no maps are needed
    CHECK(paths(square).count("in.w") == 0);
    CHECK(count_parameters(square) == 2 * (2 * 24 + 6 + 4));
  }
}

TEST_CASE("a model that does not fit its data is a configuration error", "[models]") {
  const DataShape tokens{.seq_len = 4, .vocab_size = 7},
      features{.seq_len = 4, .num_features = 3, .num_targets = 2};
  const ModelConfig decoder = model_config(decoder_yaml(""));
  CHECK(make_model(decoder, tokens)->ffn_blocks().size() == 2);
  CHECK_THROWS_AS(make_model(decoder, features), ConfigError);
  const ModelConfig ffn =
      model_config("{kind: ffn, d_model: 4, num_layers: 1, ffn: {kind: dense, activation: relu, d_ff: 6}}");
  CHECK(make_model(ffn, features)->ffn_blocks().size() == 1);
  const DataShape images{.seq_len = 4, .num_features = 3, .num_classes = 2};
  const ModelConfig encoder = model_config(
      "{kind: encoder, d_model: 4, num_layers: 1, num_heads: 1, ffn: {kind: dense, activation: relu, d_ff: "
      "6}}");
  CHECK(make_model(encoder, images)->ffn_blocks().size() == 1);
  CHECK(make_model(encoder, tokens)->ffn_blocks().size() == 1);
  CHECK_THROWS_AS(make_model(decoder, images), ConfigError);
  CHECK_THROWS_AS(make_model(ffn, images), ConfigError);
  CHECK_THROWS_AS(make_model(ffn, tokens), ConfigError);
}

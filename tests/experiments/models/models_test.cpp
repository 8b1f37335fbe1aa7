#include "core/parallel.hpp"
#include "experiments/models/decoder.hpp"
#include "experiments/models/encoder.hpp"
#include "experiments/models/ffn_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_yaml.hpp"

#include <cmath>
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
  CHECK_THROWS_AS(make_model(ffn, tokens), ConfigError);
}

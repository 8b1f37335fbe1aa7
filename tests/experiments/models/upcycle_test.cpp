// A mixture that starts from a dense checkpoint computes what the dense model computes.
#include "experiments/models/upcycle.hpp"

#include "core/error.hpp"
#include "core/optim.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_yaml.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

using namespace moelab;

namespace {

constexpr Index kVocab = 13;
constexpr Index kSeqLen = 6;
constexpr DataShape kData{.seq_len = kSeqLen, .vocab_size = kVocab};

const std::string kBody = "kind: decoder, d_model: 8, num_layers: 2, num_heads: 2, ";

std::string dense(const std::string& activation = "swiglu", bool bias = false) {
  return fmt::format("{{{}ffn: {{kind: dense, activation: {}, d_ff: 12, bias: {}}}}}", kBody, activation,
                     bias);
}

std::string mixture(const std::string& experts, const std::string& router, const std::string& more = "") {
  return fmt::format("{{{}ffn: {{kind: moe, experts: {{{}}}, router: {{{}}}{}}}}}", kBody, experts, router,
                     more);
}

struct Made {
  explicit Made(const std::string& yaml)
      : config(test::model_config(yaml)), model(make_model(config, kData)), store(*model, 3) {}
  ModelConfig config;
  std::unique_ptr<Model> model;
  ParameterStore store;
};

std::vector<double> losses_of(Model& model) {
  ForwardContext context;
  context.training = false;
  context.record = false;
  std::vector<double> losses = model.forward(test::token_batch(4, kSeqLen, kVocab), context).target_losses;
  std::erase_if(losses, [](double loss) { return std::isnan(loss); });
  return losses;
}

double largest_difference(const std::vector<double>& x, const std::vector<double>& y) {
  REQUIRE(x.size() == y.size());
  REQUIRE(!x.empty());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

// A "trained" model on the disk: random weights, biases included.
struct Trained {
  explicit Trained(const std::string& yaml) : made(yaml), file(folder.path() / "step_7.h5") {
    test::randomise_parameters(*made.model, 0.5);
    const auto optimizer = make_adamw(made.store, {});
    save_checkpoint(file, {.step = 7, .config = "model: " + yaml + "\n"}, *made.model, *optimizer);
  }
  TemporaryFolder folder;
  Made made;
  std::filesystem::path file;
};

// Error of the mixture's losses against the dense ones, right after the start.
double error_of_start(const Trained& trained, const std::string& yaml, double noise = 0) {
  Made made(yaml);
  test::randomise_parameters(*made.model, 0.7);  // what is not set would show
  upcycle(*made.model, made.config, CheckpointReader(trained.file), noise, 1);
  return largest_difference(losses_of(*made.model), losses_of(*trained.made.model));
}

std::string problems_of(const Trained& trained, const std::string& yaml) {
  return fmt::format(
      "{}", fmt::join(upcycle_problems(test::model_config(yaml), CheckpointReader(trained.file)), "\n"));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("whole copies of the FFN: the function is unchanged where the weights sum to scale", "[upcycle]") {
  const Trained trained(dense());
  const std::string experts = "count: 4, activation: swiglu, d_ff: 12";
  for (const char* router :
       {"kind: top_k, top_k: 2", "kind: top_k, top_k: 3, scale: 2.5", "kind: top_k, top_k: 2, score: sigmoid",
        "kind: top_k, top_k: 2, projection: cosine", "kind: top_k, top_k: 2, projection: mlp, bias: true",
        "kind: noisy_top_k, top_k: 2", "kind: top_p, p: 0.6", "kind: sinkhorn, top_k: 2",
        "kind: frozen, top_k: 2", "kind: random, top_k: 2, scale: 2", "kind: round_robin, top_k: 1",
        "kind: top_k, top_k: 2, expert_bias: {rate: 0.01}"}) {
    INFO(router);
    CHECK(error_of_start(trained, mixture(experts, router)) < 1e-12);
  }
  CHECK(error_of_start(trained, mixture("count: 1, activation: swiglu, d_ff: 12", "kind: top_k, top_k: 1")) <
        1e-12);
  // Shared experts start with an output of 0.
  for (const char* gate : {"none", "sigmoid"}) {
    CHECK(
        error_of_start(trained, mixture(experts, "kind: top_k, top_k: 2",
                                        fmt::format(", shared: {{count: 2, activation: silu, d_ff: 5, bias: "
                                                    "true, gate: {}}}",
                                                    gate))) < 1e-12);
  }
}

TEST_CASE("shards of the FFN: the function is unchanged, tokens take whole groups", "[upcycle]") {
  for (const char* activation : {"swiglu", "gelu"}) {
    for (const bool bias : {false, true}) {
      INFO(activation << bias);
      const Trained trained(dense(activation, bias));
      const auto shards = [&](Index count, Index d_ff, const std::string& router) {
        return mixture(
            fmt::format("count: {}, activation: {}, d_ff: {}, bias: {}", count, activation, d_ff, bias),
            router);
      };
      CHECK(error_of_start(trained, shards(8, 6, "kind: top_k, top_k: 2, scale: 2")) < 1e-12);
      CHECK(error_of_start(trained, shards(8, 6, "kind: top_k, top_k: 4")) < 1e-12);
      CHECK(error_of_start(trained, shards(9, 4, "kind: top_k, top_k: 3, bias: true")) < 1e-12);
      CHECK(error_of_start(trained, shards(12, 3, "kind: top_k, top_k: 4, score: sqrt_softplus")) < 1e-12);
      CHECK(error_of_start(trained, shards(8, 6, "kind: top_k, top_k: 2, projection: cosine")) < 1e-12);
      CHECK(error_of_start(trained, shards(8, 6, "kind: sinkhorn, top_k: 2")) < 1e-12);
    }
  }
  // `granularity` is the same in other words.
  const Trained trained(dense());
  CHECK(error_of_start(trained, mixture("count: 4, activation: swiglu, d_ff: 12", "kind: top_k, top_k: 2",
                                        ", granularity: 3")) < 1e-12);
}

TEST_CASE("the hidden rows of a router stay as they started, also where they are as many as the experts",
          "[upcycle]") {
  const Trained trained(dense());
  // d_model and the number of experts are 8.
  for (const char* router : {"projection: mlp, bias: true", "projection: cosine"}) {
    const std::string yaml =
        mixture("count: 8, activation: swiglu, d_ff: 6", fmt::format("kind: top_k, top_k: 2, {}", router));
    Made made(yaml), start(yaml);
    upcycle(*made.model, made.config, CheckpointReader(trained.file), 0, 1);
    const auto expected = parameters(*start.model);
    const auto set = parameters(*made.model);
    int hidden = 0, tied = 0;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::string name = set[i].path.substr(set[i].path.rfind('.') + 1);
      if (set[i].path.find(".router.") == std::string::npos) continue;
      INFO(set[i].path);
      const Matrix now = set[i].parameter->value(), before = expected[i].parameter->value();
      if (name == "proj" || name == "w1" || name == "b1") {
        CHECK(now == before);
        ++hidden;
      } else if (name == "embed" || name == "w2") {
        CHECK(now != before);
        for (Index e = 0; e < 8; ++e) CHECK(now.row(e) == before.row(e - e % 2));
        ++tied;
      }
    }
    CHECK(hidden >= 2);  // in two layers
    CHECK(tied == 2);
  }
}

TEST_CASE("layers that stay dense are copied, also between mixtures", "[upcycle]") {
  const Trained trained(dense());
  const std::string yaml =
      "{" + kBody +
      "ffn: {kind: dense, activation: swiglu, d_ff: 12}, layers: [{at: [1], ffn: {kind: moe, "
      "experts: {count: 3, activation: swiglu, d_ff: 12}, router: {top_k: 2}}}]}";
  CHECK(error_of_start(trained, yaml) < 1e-12);
  CHECK(error_of_start(trained, dense()) < 1e-12);
}

TEST_CASE("experts are copies bit for bit, noise sets them apart by its share", "[upcycle]") {
  const Trained trained(
      "{kind: decoder, d_model: 64, num_layers: 1, num_heads: 2, ffn: {kind: dense, activation: "
      "silu, d_ff: 100, bias: true}}");
  const std::string yaml =
      "{kind: decoder, d_model: 64, num_layers: 1, num_heads: 2, ffn: {kind: moe, experts: {count: 3, "
      "activation: "
      "silu, d_ff: 100, bias: true}, router: {top_k: 2}}}";
  const CheckpointReader checkpoint(trained.file);
  for (const double noise : {0.0, 0.1}) {
    Made made(yaml);
    upcycle(*made.model, made.config, checkpoint, noise, 1);
    for (const NamedParameter& p : parameters(*made.model)) {
      const auto place = p.path.find("experts.");
      if (place == std::string::npos) continue;
      INFO(p.path);
      const Matrix source = checkpoint.parameter("layers.0.ffn" + p.path.substr(p.path.rfind('.')));
      const Matrix change = Matrix(p.parameter->value()) - source;
      if (noise == 0 || change.rows() == 1) {
        CHECK(change.isZero(0));
      } else {
        // 6400 numbers: their deviation is within 5 % of what was asked for.
        CHECK_THAT(change.norm() / source.norm(), WithinAbs(0.1, 0.005));
      }
    }
  }
  Made one(yaml), other(yaml);
  upcycle(*one.model, one.config, checkpoint, 0.1, 1);
  upcycle(*other.model, other.config, checkpoint, 0.1, 2);
  CHECK(one.store.values() != other.store.values());
}

TEST_CASE("where the weights do not sum to scale, that is told", "[upcycle]") {
  const Trained trained(dense());
  const std::string experts = "count: 4, activation: swiglu, d_ff: 12";
  const std::vector<std::pair<std::string, bool>> cases{
      {mixture(experts, "kind: top_k, top_k: 2"), false},
      {mixture(experts, "kind: top_k, top_k: 2, normalize: false"), true},
      {mixture(experts, "kind: expert_choice, top_k: 2"), true},
      {mixture(experts, "kind: top_k, top_k: 2", ", capacity: {factor: 0.5}"), true}};
  for (const auto& [yaml, changed] : cases) {
    INFO(yaml);
    Made made(yaml);
    const auto told = upcycle(*made.model, made.config, CheckpointReader(trained.file), 0, 1);
    CHECK(has(told.front(), "step 7"));
    CHECK((told.size() > 1) == changed);
    const double error = largest_difference(losses_of(*made.model), losses_of(*trained.made.model));
    CHECK((error > 1e-6) == changed);
  }
}

TEST_CASE("what does not fit is told, each thing", "[upcycle]") {
  const Trained trained(dense());
  const std::string experts = "count: 4, activation: swiglu, d_ff: 12";
  CHECK(problems_of(trained, mixture(experts, "top_k: 2")) == "");
  CHECK(problems_of(trained,
                    "{kind: decoder, d_model: 16, num_layers: 2, num_heads: 2, ffn: {kind: moe, experts: "
                    "{count: 4, activation: swiglu, d_ff: 12}, router: {top_k: 2}}}") ==
        "its model.d_model is 8, that of the model is 16");
  CHECK(has(problems_of(trained, mixture("count: 4, activation: geglu, d_ff: 12", "top_k: 2")),
            "layer 0: its activation is swiglu, that of the experts is geglu"));
  CHECK(has(problems_of(trained, mixture("count: 4, activation: swiglu, d_ff: 12, bias: true", "top_k: 2")),
            "bias is false"));
  CHECK(has(problems_of(trained, mixture("count: 4, activation: swiglu, d_ff: 5", "top_k: 2")),
            "its d_ff 12 is not a multiple of the experts' 5"));
  CHECK(has(problems_of(trained, mixture("count: 4, activation: swiglu, d_ff: 6", "top_k: 3")),
            "one of 2 shards"));
  CHECK(has(problems_of(trained, mixture("count: 5, activation: swiglu, d_ff: 6", "top_k: 2")),
            "5 experts are no whole groups of 2 shards"));
  CHECK(has(problems_of(trained, mixture("count: 4, activation: swiglu, d_ff: 6", "kind: hash, top_k: 2")),
            "does not choose whole groups"));
  CHECK(has(problems_of(trained, mixture("kind: copy, count: 4", "top_k: 2")),
            "experts of kind copy cannot start from an FFN"));
  const Trained mixed(mixture(experts, "top_k: 2"));
  CHECK(has(problems_of(mixed, mixture(experts, "top_k: 2")), "it is a mixture already"));

  Made made(mixture("count: 4, activation: geglu, d_ff: 12", "top_k: 2"));
  CHECK_THROWS_AS(upcycle(*made.model, made.config, CheckpointReader(trained.file), 0, 1), ConfigError);
}

TEST_CASE("a parameter too many, or of another shape, is an error that names it", "[upcycle]") {
  const Trained trained(dense());
  const auto error_with = [&](const DataShape& data) {
    const ModelConfig config =
        test::model_config(mixture("count: 4, activation: swiglu, d_ff: 12", "top_k: 2"));
    const auto model = make_model(config, data);
    ParameterStore store(*model, 1);
    try {
      upcycle(*model, config, CheckpointReader(trained.file), 0, 1);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(error_with(kData) == "");
  CHECK(has(error_with({.seq_len = kSeqLen, .vocab_size = 14}),
            "embed has shape (13, 8), the model wants (14, 8)"));

  // A checkpoint whose config says less than its parameters do.
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "untied.h5";
  Made untied("{" + kBody + "tie_embeddings: false, ffn: {kind: dense, activation: swiglu, d_ff: 12}}");
  save_checkpoint(file, {.config = "model: " + dense() + "\n"}, *untied.model, *make_adamw(untied.store, {}));
  Made made(mixture("count: 4, activation: swiglu, d_ff: 12", "top_k: 2"));
  CHECK_THROWS_WITH(upcycle(*made.model, made.config, CheckpointReader(file), 0, 1),
                    Contains("parameter head has no place in the model"));
}

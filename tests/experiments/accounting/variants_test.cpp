// Twins of equal cost, comparability, and the mixture's own counts.
#include "experiments/accounting/variants.hpp"

#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "experiments/accounting/count_files.hpp"
#include "moe/make_ffn.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace moelab;

namespace {

moe::FfnConfig ffn_config(const std::string& text) {
  const auto source = yaml::make_source("ffn", text);
  Diagnostics diagnostics;
  moe::FfnConfig config;
  read_fields(yaml::parse(source->text, source, diagnostics), config, diagnostics);
  diagnostics.throw_if_errors();
  return config;
}

Accounting count_ffn(const std::string& text, Index d_model, Index context = 1) {
  const auto ffn = moe::make_ffn(ffn_config(text), {d_model, 0, 1});
  struct Root : Module {
    moe::FfnBlock* ffn = nullptr;
    void visit(Visitor& v) override { v.module("ffn", *ffn, ffn->num_experts() == 0 ? "dense_ffn" : ""); }
  } root;
  root.ffn = ffn.get();
  return account(root, context);
}

RunConfig run_config(const std::string& ffn) {
  RunConfig config;
  config.data.kind = "synthetic";
  config.data.synthetic.num_features = config.data.synthetic.num_targets = 16;
  config.model.kind = "ffn";
  config.model.d_model = 16;
  config.model.num_layers = 2;
  config.model.ffn = ffn_config(ffn);
  return config;
}

const char* const kMoe =
    "{kind: moe, experts: {kind: ffn, count: 8, activation: swiglu, d_ff: 24}, "
    "router: {kind: top_k, top_k: 2}}";

// A file that is gone at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / "moelab_variants_test.yaml") {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const char* const kExperiment = R"(
version: 1
name: twins
seeds: [0, 1]
data: {kind: synthetic, num_features: 16, num_targets: 16}
model: {kind: ffn, d_model: 16, num_layers: 2, ffn: {kind: dense, activation: swiglu, d_ff: 48}}
train: {max_steps: 2, batch_tokens: 8, optimizer: {kind: adamw, lr: 1e-3}}
variants:
  dense: {}
  moe:
    model.ffn:
      {kind: moe, experts: {kind: ffn, count: 8, activation: swiglu, d_ff: 24}, router: {kind: top_k, top_k: 2}}
  twin: {twin_of: moe, match: active_flops}
  big: {model.ffn: {d_ff: 96}}
compare: {baseline: dense, match: active_flops, tolerance: 0.10}
)";

}  // namespace

// Row B1 of the reported faults: SwiGLU, d = 8, h = 16, E = 4, k = 2. An expert has 3 * 8 * 16 = 384 weights,
// the router 32: 2 (2 * 384 + 32) = 1600 FLOPs a token, 3136 if every expert ran, 4800 in training.
TEST_CASE("a mixture costs its chosen experts and its router") {
  const Accounting a = count_ffn(
      "{kind: moe, experts: {kind: ffn, count: 4, activation: swiglu, d_ff: 16}, router: {kind: top_k, "
      "top_k: 2}}",
      8);
  CHECK(a.product_flops == 1600);
  CHECK(a.training_flops() == 4800);
  CHECK(a.ffn_flops_if_all_active + 64 == 3136);
  CHECK(a.active_compute_ratio() == 0.5);
  CHECK(a.total == 4 * 384 + 32);
  CHECK(a.active_all == 2 * 384 + 32);
}

// Row B4: the width of an expert is its own.
TEST_CASE("experts are counted at their own width") {
  const Accounting a = count_ffn(
      "{kind: moe, experts: {kind: ffn, count: 1, activation: swiglu, d_ff: 16}, router: {kind: top_k, "
      "top_k: 1, "
      "normalize: false}}",
      8);
  CHECK(a.experts_routed_total == 384);
  CHECK(count_ffn("{kind: dense, activation: swiglu, d_ff: 64}", 8).total == 1536);
}

// FFN(512, 64, bias) and FFN(512, 2048, bias).
TEST_CASE("dense FFNs with biases") {
  CHECK(count_ffn("{kind: dense, activation: relu, d_ff: 64, bias: true}", 512).total == 66'112);
  CHECK(count_ffn("{kind: dense, activation: relu, d_ff: 2048, bias: true}", 512).total == 2'099'712);
}

TEST_CASE("with Soft MoE every parameter is active, and compute follows the slots") {
  // An expert has 3 * 8 * 16 = 384 weights; phi has a row of 8 for each slot; 1 scale.
  const auto soft = [](Index slots, Index context) {
    return count_ffn(
        fmt::format("{{kind: moe, experts: {{kind: ffn, count: 4, activation: swiglu, d_ff: 16}}, "
                    "router: {{kind: soft, slots: {}}}}}",
                    slots),
        8, context);
  };
  const Accounting few = soft(2, 64);  // 8 rows for 64 tokens
  CHECK(few.total == 4 * 384 + 8 * 8 + 1);
  CHECK(few.active_all == few.total);
  CHECK(few.ffn_flops == 2 * 384 * 8 / 64);
  CHECK(few.ffn_flops_if_all_active == 2 * 384 * 4);
  const Accounting many = soft(4, 1);  // 16 rows for one token
  CHECK(many.total == 4 * 384 + 16 * 8 + 1);
  CHECK(many.active_all == many.total);
  CHECK(many.ffn_flops == 2 * 384 * 16);
  CHECK(many.active_compute_ratio() == 4);
}

TEST_CASE("shared experts are always active, and their gate is theirs") {
  const Accounting a = count_ffn(
      "{kind: moe, experts: {kind: ffn, count: 4, activation: swiglu, d_ff: 16}, shared: {count: 2, "
      "activation: swiglu, "
      "d_ff: 8, gate: sigmoid}, router: {kind: top_k, top_k: 2}}",
      8);
  const auto shared = std::find_if(a.modules.begin(), a.modules.end(),
                                   [](const ModuleRow& r) { return r.group == "shared_experts"; });
  REQUIRE(shared != a.modules.end());
  CHECK(shared->params_total == 2 * 3 * 8 * 8 + 8);
  CHECK(shared->params_active == shared->params_total);
  CHECK(shared->product_flops == 2 * shared->params_total);
}

TEST_CASE("the nearest width, ties to the lower") {
  const auto linear = [](Index w) { return 100 + 7 * w; };
  CHECK(nearest_width(linear, 107) == 1);
  CHECK(nearest_width(linear, 107 + 7 * 12) == 13);
  CHECK(nearest_width(linear, 107 + 7 * 12 + 3) == 13);
  CHECK(nearest_width(linear, 107 + 7 * 12 + 4) == 14);
  CHECK(nearest_width([](Index w) { return 2 * w; }, 7) == 3);
  CHECK_THROWS_WITH(nearest_width(linear, 106), Contains("width of 1"));
  CHECK_THROWS_WITH(nearest_width([](Index) { return 5; }, 7), Contains("changes nothing"));
}

// 2 chosen experts of 3 * 16 * 24 weights and a router of 8 * 16: 2304 + 128 = 2432 products a layer; a dense
// SwiGLU has 48 w, so w = 2432 / 48 = 50.67 -> 51.
TEST_CASE("a dense twin of equal active compute") {
  RunConfig twin = run_config("{kind: dense, activation: swiglu, d_ff: 4}");
  const std::string nearness = solve_twin(twin, run_config(kMoe), "active_flops");
  CHECK(twin.model.ffn.dense.d_ff == 51);
  CHECK_THAT(nearness, Contains("d_ff = 51 gives 9792 forward FLOPs a token, 0.658 % from the 9728"));
}

TEST_CASE("a twin that costs just the same leaves nothing to say") {
  RunConfig twin = run_config("{kind: dense, activation: swiglu, d_ff: 4}");
  CHECK(solve_twin(twin, run_config("{kind: dense, activation: swiglu, d_ff: 51}"), "active_flops").empty());
  CHECK(twin.model.ffn.dense.d_ff == 51);
}

// 8 * 3 * 16 * 24 + 128 = 9344 parameters a layer: 9344 / 48 = 194.67.
TEST_CASE("a dense twin of equal size") {
  RunConfig twin = run_config("{kind: dense, activation: swiglu, d_ff: 4}");
  solve_twin(twin, run_config(kMoe), "total_params");
  CHECK(twin.model.ffn.dense.d_ff == 195);
}

// The other way round: 2 * 48 w + 128 = 48 * 100 products a layer, w = 48.67.
TEST_CASE("a mixture as twin is solved by the width of its experts") {
  RunConfig twin = run_config(kMoe);
  const std::string nearness =
      solve_twin(twin, run_config("{kind: dense, activation: swiglu, d_ff: 100}"), "active_flops");
  CHECK(twin.model.ffn.moe.experts[0].expert.as<moe::FfnExpertOptions>().d_ff == 49);
  CHECK_THAT(nearness, Contains("the experts' d_ff = 49"));
}

TEST_CASE("variants of an experiment: twins solved, incomparable ones named") {
  const TemporaryFile file(kExperiment);
  LoadOptions options;
  options.solve_twin = solve_twin;
  const Experiment experiment = load_experiment(file.path(), options);
  const std::vector<CountedModel> counted = count_variants(experiment);
  REQUIRE(counted.size() == 4);
  CHECK(counted[2].name == "twin");
  CHECK(counted[2].accounting.product_flops == 9792);
  const std::vector<std::string> warnings = comparability_warnings(experiment);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0],
             Contains("big and the baseline dense are not comparable by active_flops: 18432 against 9216"));
}

TEST_CASE("an experiment is counted whose text is not there") {
  const TemporaryFile file(R"(
version: 1
name: elsewhere
data: {kind: text, domains: [{name: a, path: /nowhere/text.txt}]}
model: {kind: decoder, d_model: 16, num_layers: 1, num_heads: 2, ffn: {activation: relu, d_ff: 32}}
train: {max_steps: 2, batch_tokens: 128, optimizer: {lr: 1e-3}}
)");
  CountOptions options;
  options.arguments = {file.path().string()};
  CHECK_THAT(count_files(options), Contains("base"));
}

// The mixture has settings that the dense variant knows nothing of. Experts of width 24, two of them chosen,
// and a router of 8 x 16 cost 2 (2 * 3 * 16 * 24 + 128) = 4864 FLOPs a layer; dense 48: 4608; dense 96: 9216.
TEST_CASE("variants of a sweep are set against the baseline of the same settings") {
  std::string text = kExperiment;
  text = text.substr(0, text.find("  twin:")) + R"(
sweep:
  list:
    - {train.optimizer.lr: 1e-3, model.ffn.d_ff: 48, only: [dense]}
    - {train.optimizer.lr: 2e-3, model.ffn.d_ff: 96, only: [dense]}
    - {train.optimizer.lr: 1e-3, model.ffn.experts.d_ff: 24, only: [moe]}
    - {train.optimizer.lr: 2e-3, model.ffn.experts.d_ff: 48, only: [moe]}
    - {train.optimizer.lr: 3e-3, model.ffn.experts.d_ff: 24, only: [moe]}
compare: {baseline: dense, match: active_flops, tolerance: 0.06}
)";
  const TemporaryFile file(text);
  const Experiment experiment = load_experiment(file.path(), {});
  REQUIRE(experiment.runs.size() == 10);
  const auto base_of = [&](const char* name) {
    const auto run = std::ranges::find(experiment.runs, name, &Run::name);
    const Run* base = baseline_run(experiment, *run);
    return base == nullptr ? "none" : base->name;
  };
  CHECK(base_of("moe-s1-p2") == "dense-s0-p0");
  CHECK(base_of("moe-s0-p3") == "dense-s0-p1");
  CHECK(base_of("dense-s0-p1") == "dense-s0-p1");
  CHECK(base_of("moe-s0-p4") == "none");
  // 4864 and 9472 are 5.6 and 2.8 % from their own baselines, but 9472 is twice 4608.
  const std::vector<std::string> warnings = comparability_warnings(experiment);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains("moe-p4 is compared with nothing"));
}

// What an experiment file may say field by field, but not together or not at this size.
#include "experiments/config/recorded_metrics.hpp"
#include "tests/experiments/config/experiment_text.hpp"
#include "tests/support/catch.hpp"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

using namespace moelab;

TEST_CASE("A router that needs token ids is refused where rows have none") {
  const std::string hash =
      "{kind: moe, experts: {count: 4, activation: relu, d_ff: 8}, router: {kind: hash, top_k: 2}}";
  const std::string dense = "{kind: dense, activation: relu, d_ff: 32}";
  const auto model = [](const std::string& ffn, const std::string& more) {
    return "version: 1\n" + kData + "model:\n  kind: ffn\n  d_model: 16\n  num_layers: 2\n  ffn: " + ffn +
           "\n" + more + kTrain;
  };
  const std::string text = errors(model(hash, ""));
  CHECK(has(text, "model.ffn.router: the router hash chooses by token ids"));
  CHECK(has(text, "data of kind synthetic"));
  CHECK(has(text, "e.yaml:7:"));  // the line of the router
  CHECK(has(errors(model(dense, "  layers: [{at: [1], ffn: " + hash + "}]\n")),
            "model.layers[0].ffn.router: "));
  // A block that no layer uses does no harm.
  CHECK(errors(model(hash, "  layers: [{at: [0, 1], ffn: " + dense + "}]\n")) == "");
}

TEST_CASE("Sizes that no machine holds are refused before anything is made") {
  CHECK(has(errors_with("num_layers: 1", "num_layers: 2000000000000"), "at most 10000"));
  CHECK(has(errors_with("d_model: 16", "d_model: 2000000000000"), "at most 1000000"));
  CHECK(has(errors_with("d_ff: 32", "d_ff: 2000000000000"), "at most 1000000"));
  CHECK(has(errors_with("num_features: 16", "num_features: 2000000000000"), "at most 1000000"));
  CHECK(has(errors_with("num_targets: 16", "num_targets: 16, seq_len: 2000000000000"), "at most 10000000"));
  const std::string many =
      "ffn: {kind: moe, experts: {count: 2001, activation: relu, d_ff: 8}, router: {kind: top_k, top_k: 2}}";
  std::string text = kBase;
  text.replace(text.find("num_layers: 1"), 13, "num_layers: 500");
  const std::string ffn = "ffn: {kind: dense, activation: relu, d_ff: 32}";
  text.replace(text.find(ffn), ffn.size(), many);
  CHECK(has(errors(text), "500 layers have 1000500 experts in all; at most 1000000 are possible"));
}

TEST_CASE("A sweep of more points than an experiment may have runs is refused before they are made") {
  const auto values = [](const char* what, int count) {
    std::string list = fmt::format("{{train.optimizer.{}: [", what);
    for (int i = 1; i <= count; ++i) list += fmt::format("{}{}", i == 1 ? "" : ", ", i * 1e-6);
    return list + "]}";
  };
  const std::string too_many = "the experiment has more than 10000 runs";
  // 300 x 300 x 300 points would be 27 million.
  CHECK(has(
      errors(kBase + "sweep: {grid: " + values("lr", 101) + ", zip: " + values("weight_decay", 100) + "}\n"),
      too_many));
  std::string list = ", list: [";
  for (int i = 1; i <= 300; ++i) list += fmt::format("{}{{train.grad_clip: {}}}", i == 1 ? "" : ", ", i);
  const std::string cube =
      "sweep: {grid: " + values("lr", 300) + ", zip: " + values("weight_decay", 300) + list + "]}\n";
  CHECK(has(errors(kBase + cube), too_many));
  CHECK(has(errors(kBase + "seeds: [1, 2, 3]\nsweep: {grid: " + values("lr", 4000) + "}\n"), too_many));
  CHECK(has(errors(kBase + "sweep: {grid: " + values("lr", 10001) + "}\n"),
            "sweep.grid.train.optimizer.lr has more than 10000 values"));
}

TEST_CASE("An experiment file that cannot be opened is told of as what it is") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("loop.yaml", folder.path() / "loop.yaml");
  for (const auto& [name, why] : {std::pair{"loop.yaml", "Too many levels of symbolic links"},
                                  std::pair{"missing.yaml", "No such file or directory"}}) {
    CHECK_THROWS_AS(load_experiment(folder.path() / name, {}), ConfigError);
    CHECK_THROWS_WITH(load_experiment(folder.path() / name, {}), Contains(name) && Contains(why));
  }
}

TEST_CASE("Counts that would overflow when they are multiplied are refused with their limit") {
  const std::string huge = "4611686018427387905";  // times 4 it is 4 in 64 bits
  const auto mixture = [](const std::string& router, const std::string& more = "") {
    std::string text = kBase;
    const std::string ffn = "{kind: dense, activation: relu, d_ff: 32}";
    return text.replace(text.find(ffn), ffn.size(),
                        "{kind: moe, granularity: 4, experts: {count: 4, activation: relu, d_ff: 8}, "
                        "router: {" +
                            router + "}" + more + "}");
  };
  for (const std::string kind : {"top_k", "noisy_top_k", "frozen", "sinkhorn", "expert_choice", "relu",
                                 "random", "round_robin", "hash"}) {
    const std::string text = errors(mixture("kind: " + kind + ", top_k: " + huge));
    CAPTURE(kind, text);
    CHECK(has(text, "e.yaml:7:"));
    CHECK(has(text, "model.ffn.router.top_k: " + huge + " is out of range"));
    CHECK(has(text, "at most 1000000"));
  }
  CHECK(has(errors(mixture("kind: top_p, p: 0.5, max_k: " + huge)), "router.max_k: " + huge));
  CHECK(has(errors(mixture("kind: top_k, top_k: 2, groups: {count: 4, keep: " + huge + "}")),
            "router.groups.keep: " + huge));
  CHECK(has(errors(mixture("kind: top_k, top_k: 2, groups: {count: " + huge + ", keep: 1}")),
            "router.groups.count: " + huge));
  CHECK(errors(mixture("kind: top_k, top_k: 4")) == "");
  CHECK(has(errors_with("num_targets: 16", "num_targets: 16, seq_len: 4, eval_sequences: " + huge),
            "data.eval_sequences: " + huge + " is out of range"));
}

TEST_CASE("Numbers that float32 cannot hold are refused in every block") {
  const auto optimizer = [](const std::string& keys) {
    return errors("version: 1\n" + kData + kModel + "train: {max_steps: 10, batch_tokens: 32, optimizer: {" +
                  keys + "}}\n");
  };
  CHECK(optimizer("lr: 1e-3, eps: 1e-37") == "");
  CHECK(has(optimizer("lr: 1e-3, eps: 1e-40"), "train.optimizer.eps: 1e-40 is out of the range of float32"));
  CHECK(has(optimizer("lr: 1e-3, betas: [0.9, 0.99999999]"), "train.optimizer.betas[1]: 0.99999999"));
  CHECK(has(optimizer("lr: 1e39"), "train.optimizer.lr: 1e39 is out of the range of float32"));
  const auto router = [](const std::string& keys) {
    return errors_with(
        "{kind: dense, activation: relu, d_ff: 32}",
        "{kind: moe, experts: {count: 4, activation: relu, d_ff: 8}, router: {kind: top_k, top_k: 2, " +
            keys + "}}");
  };
  CHECK(router("temperature: 2") == "");
  CHECK(has(router("temperature: 1e-40"), "router.temperature: 1e-40"));
  CHECK(has(router("temperature: 1e38"), "router.temperature: 1e38"));  // 1e-38 is denormal
  CHECK(has(router("jitter: 0.99999999"), "router.jitter: 0.99999999"));
  CHECK(has(errors_with("d_ff: 32", "d_ff: 32, dropout: 0.99999999"), "dropout: 0.99999999"));
}

TEST_CASE("A value that stands twice in a grid, or a point in a list, is an error at its place") {
  CHECK(has(errors(kBase + "sweep: {grid: {train.optimizer.lr: [1e-3, 3e-3, 1e-3]}}\n"),
            "e.yaml:9:49: error: sweep.grid.train.optimizer.lr: 1e-3 stands twice"));
  CHECK(
      has(errors(kBase + "sweep: {grid: {train.optimizer.lr: [1e-3, 0.001]}}\n"), "lr: 0.001 stands twice"));
  CHECK(has(errors(kBase + "sweep: {grid: {train.batch_tokens: [32, 3_2, 64]}}\n"), "3_2 stands twice"));
  CHECK(errors(kBase + "sweep: {grid: {train.optimizer.lr: [1e-3, 0.002]}}\n") == "");
  CHECK(has(errors(kBase + "sweep:\n  list:\n    - {train.max_steps: 4}\n    - {train.max_steps: 4}\n"),
            "e.yaml:12:8: error: sweep: a point stands twice; both would be the run base-s0-p0"));
}

TEST_CASE("The name of a run has room for its variant, seed and point") {
  const auto with_variant = [](std::size_t length) {
    return kBase + "variants:\n  " + std::string(length, 'v') + ": {}\n";
  };
  CHECK(errors(with_variant(97)) == "");  // and -s0 are 100 bytes
  CHECK(has(errors(with_variant(98)),
            "e.yaml:10:3: error: the run " + std::string(98, 'v') + "-s0 has a name of 101"));
  CHECK(has(errors(with_variant(97) + "sweep: {grid: {train.max_steps: [1]}}\n"), "has a name of 103 bytes"));
  CHECK(has(errors(kBase + "variants: {-a: {}}\n"), "`-a` cannot name a variant"));
}

TEST_CASE("Numbers of tokens and steps that do not fit are told, not wrapped around") {
  const auto train_with = [](const std::string& keys) {
    return errors("version: 1\n" + kData + kModel + "train: {" + keys + ", optimizer: {lr: 1e-3}}\n");
  };
  CHECK(has(train_with("max_steps: 1e18, batch_tokens: 32"), "train.max_steps"));
  CHECK(has(train_with("max_tokens: 9e18, batch_tokens: 32"), "train.max_tokens"));
  CHECK(has(train_with("max_steps: 1, batch_tokens: 1e18"), "train.batch_tokens"));
  CHECK(train_with("max_steps: 1e9, batch_tokens: 1e9") == "");
}

TEST_CASE("Layers that are not there are an error") {
  const std::string layers = "version: 1\n" + kData +
                             "model:\n  kind: ffn\n  d_model: 16\n  num_layers: 2\n"
                             "  ffn: {activation: relu, d_ff: 8}\n  layers: [{every: 2, offset: OFFSET, ffn: "
                             "{activation: relu, d_ff: 4}}]\n" +
                             kTrain;
  const auto with_offset = [&](const std::string& offset) {
    std::string text = layers;
    return errors(text.replace(text.find("OFFSET"), 6, offset));
  };
  CHECK(with_offset("1") == "");
  CHECK(has(with_offset("2"), "error: model.layers[0].offset: there is no layer 2 among 2"));
}

TEST_CASE("Keys that mean nothing for images are errors") {
  const auto images = [](const std::string& keys) {
    return errors(
        "version: 1\ndata: {kind: images, image_size: 28, patch_size: 7, path: /nowhere}\n"
        "model: {kind: encoder, d_model: 16, num_heads: 2" +
            keys +
            ", ffn: {activation: relu, d_ff: 8}}\n"
            "train: {max_steps: 1, batch_tokens: 16, optimizer: {lr: 1e-3}}\n",
        {.overrides = {}, .look_for_data = false, .solve_twin = {}});
  };
  CHECK(images("") == "");
  CHECK(has(images(", mask_fraction: 0.3"), "error: model.mask_fraction: images are classified"));
  CHECK(has(images(", tie_embeddings: false"), "error: model.tie_embeddings: images are classified"));
}

TEST_CASE("Control characters are refused where text and names belong, and shown as what they are") {
  const std::string text = errors(kBase + "name: \"a\\e]0;owned\\a\"\n");
  CHECK(has(text, "e.yaml:9:7: error: name: the text \"a\\x1b]0;owned\\x07\" holds a control character"));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(has(errors(kBase + "name: \"a\\nb\"\n"), "name: the text \"a\\nb\" holds a control character"));
  CHECK(has(errors(kBase + "name: \"a\\u202Eb\"\n"), "holds a control character"));
  CHECK(has(errors(kBase + "compare: {metric: \"eval/loss\\r\"}\n"),
            "compare.metric: the text \"eval/loss\\x0d\" holds"));
  CHECK(has(errors(kBase + "variants: {\"a\\nb\": {}}\n"), "the key `a\\nb` holds a control character"));
  CHECK(has(errors(kBase + "sweep: {grid: {\"train.\\eseed\": [1]}}\n"), "holds a control character"));
  const std::string domains =
      "version: 1\ndata: {kind: text, domains: [{name: \"a\\nb\", path: t.txt}]}\n" + kModel + kTrain;
  CHECK(has(errors(domains), "data.domains[0].name: the text \"a\\nb\" holds a control character"));
  setenv("MOELAB_TEST_NAME", "a\x1b[2J", 1);
  CHECK(has(errors(kBase + "name: ${env:MOELAB_TEST_NAME}\n"), "name: `a\\x1b[2J` holds"));
  // Questions may have lines.
  CHECK(load(kBase + "description: |\n  one\n  \ttwo\n").description == "one\n\ttwo\n");
  CHECK(has(errors(kBase + "description: \"a\\e\"\n"),
            "description: the text \"a\\x1b\" holds a control character"));
  // The line of the file is shown too, with the caret where it belongs.
  const std::string raw = errors(kBase + "na\x1bme: x\n");
  CHECK(has(raw, "    9 | na\\x1bme: x\n      |   ^"));
  CHECK(raw.find('\x1b') == std::string::npos);
}

TEST_CASE("Co-activation that will not be recorded is told before the training") {
  const auto with_experts = [](int count) {
    std::string text = kBase;
    const std::string ffn = "ffn: {kind: dense, activation: relu, d_ff: 32}";
    const std::string experts = fmt::format("experts: {{count: {}, activation: relu, d_ff: 8}}", count);
    text.replace(text.find(ffn), ffn.size(),
                 "ffn: {kind: moe, " + experts + ", router: {kind: top_k, top_k: 2}}");
    return load(text);
  };
  const Experiment most = with_experts(4096), more = with_experts(4097);
  CHECK(most.warnings.empty());
  REQUIRE(more.warnings.size() == 1);
  CHECK(
      has(more.warnings[0],
          "variant base: the results will have no co-activation of experts: 1 mixtures of 4097 experts have "
          "16785409 pairs, 16777216 are counted at most"));
  // Four copies of 4,096 x 4,096 numbers of 8 bytes; without them, of 4,097 a few.
  const double bytes = routing_record_bytes(most.runs[0].config);
  CHECK((bytes > 4 * 8 * 4096.0 * 4096 && bytes < 1.1 * 4 * 8 * 4096.0 * 4096));
  CHECK(routing_record_bytes(more.runs[0].config) < 0.01 * bytes);
  CHECK(routing_record_bytes(load(kBase).runs[0].config) == 0);
}

TEST_CASE("A metric is looked for among many in a moment") {
  // A million clusters are a million metrics. Were each compared with each, this would end by its time limit.
  const std::string text = errors(
      "version: 1\ndata: {kind: synthetic, num_features: 16, num_targets: 16, num_clusters: 1000000}\n" +
      kModel + kTrain + "variants: {a: {}, b: {train.max_steps: 5}}\ncompare: {metric: accuracy}\n");
  CHECK(has(text, "compare.metric: `accuracy` is recorded by no run"));
  CHECK(has(text, "known: eval/loss, eval/loss/cluster_0, "));
  CHECK(has(text, " or one of 999957 more"));
}

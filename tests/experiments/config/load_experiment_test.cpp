#include "core/error.hpp"
#include "core/fields_reader.hpp"
#include "core/fields_writer.hpp"
#include "core/yaml.hpp"
#include "experiments/config/select_runs.hpp"
#include "tests/experiments/config/experiment_text.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace moelab;

TEST_CASE("A base alone is one run a seed") {
  const Experiment e = load(kBase + "seeds: [3, 5]\n");
  CHECK(names(e) == std::vector<std::string>{"base-s3", "base-s5"});
  CHECK(e.name == "e");
  CHECK(e.runs[1].seed == 5);
  CHECK(e.runs[0].config.train.optimizer.lr == 1e-3);
  CHECK(e.runs[0].config.train.num_steps() == 10);
  CHECK(e.runs[0].config.model.ffn.kind == "dense");
  CHECK_FALSE(e.runs[0].point.has_value());
}

TEST_CASE("Variants patch the base, and each other") {
  const Experiment e = load(kBase +
                            "variants:\n"
                            "  dense: {}\n"
                            "  nothing:\n"
                            "  moe:\n"
                            "    model.ffn: {" +
                            kMoe +
                            "}\n"
                            "    train.optimizer.lr: 2e-3\n"
                            "  more:\n"
                            "    extends: moe\n"
                            "    model.ffn.router.top_k: 3\n");
  CHECK(names(e) == std::vector<std::string>{"dense-s0", "nothing-s0", "moe-s0", "more-s0"});
  CHECK(e.runs[0].config.model.ffn.kind == "dense");
  CHECK(e.runs[2].config.model.ffn.kind == "moe");
  CHECK(e.runs[2].config.train.optimizer.lr == 2e-3);
  CHECK(e.runs[3].config.train.optimizer.lr == 2e-3);
  CHECK(e.runs[3].config.model.ffn.moe.num_experts() == 4);
  CHECK(has(e.runs[2].resolved_yaml, "top_k: 2"));
  CHECK(has(e.runs[3].resolved_yaml, "top_k: 3"));
}

TEST_CASE("Overrides change the base before variants do") {
  const std::string text = kBase + "variants:\n  a: {}\n  b: {train.optimizer.lr: 5e-3}\n";
  const Experiment e = load(text, {.overrides = {"train.optimizer.lr=2e-3", "seeds=[7]"}, .solve_twin = {}});
  CHECK(run_named(e, "a-s7").config.train.optimizer.lr == 2e-3);
  CHECK(run_named(e, "b-s7").config.train.optimizer.lr == 5e-3);
  CHECK(has(errors(text, {.overrides = {"train.optimiser.lr=1"}, .solve_twin = {}}),
            "<override 1>:1:1: error: `train` has no key `optimiser`"));
  CHECK(has(errors(text, {.overrides = {"seeds=[1]", "train.optimizer.lr=fast"}, .solve_twin = {}}),
            "<override 2>:1:20: error: train.optimizer.lr: `fast` is not a number"));
}

TEST_CASE("A sweep makes points") {
  const std::string variants = "variants:\n  dense: {}\n  moe: {model.ffn: {" + kMoe + "}}\n";
  SECTION("a grid is every combination") {
    const Experiment e =
        load(kBase + "sweep: {grid: {train.optimizer.lr: [1e-3, 3e-3], train.max_steps: [5, 6]}}\n");
    CHECK(names(e) == std::vector<std::string>{"base-s0-p0", "base-s0-p1", "base-s0-p2", "base-s0-p3"});
    REQUIRE(e.points.size() == 4);
    CHECK(e.points[1].settings == std::vector<std::pair<std::string, std::string>>{
                                      {"train.optimizer.lr", "1e-3"}, {"train.max_steps", "6"}});
    CHECK(e.runs[1].config.train.max_steps == 6);
    CHECK(e.runs[2].config.train.optimizer.lr == 3e-3);
  }
  SECTION("a zip goes through its lists together, for some variants only") {
    const Experiment e =
        load(kBase + variants +
             "sweep:\n"
             "  grid: {train.optimizer.lr: [1e-3, 3e-3]}\n"
             "  zip: {model.ffn.experts.count: [4, 8], model.ffn.router.top_k: [2, 3], only: [moe]}\n");
    CHECK(e.runs.size() == 2 + 4);
    CHECK(run_named(e, "dense-s0-p1").config.train.optimizer.lr == 3e-3);
    std::vector<Index> counts;
    for (const Run& run : e.runs) {
      if (run.variant == "moe") counts.push_back(run.config.model.ffn.moe.num_experts());
    }
    CHECK(counts == std::vector<Index>{4, 8, 4, 8});
    // A point is one set of settings, whatever variant runs it.
    CHECK(e.points.size() == 6);
  }
  SECTION("a list holds patches") {
    const Experiment e = load(kBase + variants +
                              "sweep: {list: [{train.max_steps: 4}, {model.ffn.router.top_k: 1, "
                              "model.ffn.router.normalize: false, only: moe}]}\n");
    CHECK(names(e) == std::vector<std::string>{"dense-s0-p0", "moe-s0-p0", "moe-s0-p1"});
  }
  SECTION("lists of unequal length, no lists, foreign variants") {
    const std::string found = errors(kBase + variants +
                                     "sweep:\n"
                                     "  zip: {train.max_steps: [1, 2, 3], train.optimizer.lr: [1e-3]}\n"
                                     "  grid: {train.batch_tokens: 32, only: [mo]}\n");
    CHECK(has(found, "error: sweep.zip: train.optimizer.lr has 1 values, train.max_steps has 3"));
    CHECK(has(found, "error: sweep.grid.train.batch_tokens: `32` where a list of values belongs"));
    CHECK(has(found, "only: `mo` is not a variant"));
    CHECK(has(found, "did you mean `moe`?"));
  }
}

TEST_CASE("A metric that no run records is told before anything is trained") {
  const std::string found = errors(kBase + "compare: {metric: loss}\n");
  CHECK(has(found, "error: compare.metric: `loss` is recorded by no run"));
  CHECK(has(found, "train/loss"));
  const std::string near = errors(kBase + "compare: {metric: eval/los}\n");
  CHECK(has(near, "e.yaml:9:"));
  CHECK(has(near, "`eval/los` is recorded by no run"));
  CHECK(has(near, "did you mean `eval/loss`?"));
  // Synthetic data have clusters instead of text and classes.
  CHECK(errors(kBase + "compare: {metric: eval/loss/cluster_3}\n").empty());
  CHECK(has(errors(kBase + "compare: {metric: eval/loss/cluster_4}\n"), "did you mean `eval/loss/cluster_"));
  CHECK(has(errors(kBase + "compare: {metric: eval/bits_per_byte}\n"), "is recorded by no run"));
  CHECK(has(errors(kBase + "compare: {metric: eval/accuracy}\n"), "is recorded by no run"));
  CHECK(errors(kBase + "compare: {metric: train/grad_norm}\n").empty());
  // Auxiliary losses, of a run that has one.
  const std::string mixture =
      "variants: {moe: {model.ffn: {kind: moe, experts: {kind: ffn, count: 4, activation: relu, d_ff: 8}, "
      "router: {kind: top_k, top_k: 2}, losses: {z: 1e-3}}}}\n";
  CHECK(errors(kBase + mixture + "compare: {metric: train/aux_z}\n").empty());
  CHECK(
      has(errors(kBase + mixture + "compare: {metric: train/aux_load_balance}\n"), "is recorded by no run"));
  CHECK(has(errors(kBase + "compare: {metric: train/aux_z}\n"), "is recorded by no run"));
}

TEST_CASE("Class names are the domains of the results") {
  const auto found = [](const std::string& names) {
    return errors("version: 1\ndata: {kind: images, num_classes: 2, class_names: " + names + "}\n" + kModel +
                  kTrain);
  };
  CHECK(has(found("[a, a]"), "two classes have the same name"));
  CHECK(has(found("[\"a/b\", c]"), "a class needs a name without a slash"));
  CHECK(has(found("[a, \"\"]"), "a class needs a name without a slash"));
  CHECK_FALSE(has(found("[a, b]"), "class_names"));
}

TEST_CASE("Five different mistakes are told at once, each with its place and what would be right") {
  const std::string found = errors(
      "version: 1\n"
      "data: {kind: synthetic, num_features: 16, num_targets: 16}\n"
      "model:\n"
      "  kind: ffn\n"
      "  hidden_size: 16\n"
      "  num_layer: 1\n"
      "  ffn: {kind: dense, activation: rellu, d_ff: 010}\n"
      "train: {max_steps: 1.5, batch_tokens: 32, optimizer: {lr: -1}}\n");
  CHECK(has(found, "e.yaml:5:3: error: `model` has no key `hidden_size`"));
  CHECK(has(found, "`hidden_size` is called `d_model` here"));
  CHECK(has(found, "e.yaml:6:3: error: `model` has no key `num_layer`"));
  CHECK(has(found, "did you mean `num_layers`?"));
  CHECK(has(found, "e.yaml:7:34: error: model.ffn.activation: `rellu` is not one of"));
  CHECK(has(found, "did you mean `relu`?"));
  CHECK(has(found, "e.yaml:7:47: error: model.ffn.d_ff: `010` has a leading zero"));
  CHECK(has(found, "write 10"));
  CHECK(has(found, "e.yaml:8:20: error: train.max_steps: `1.5` is not an integer"));
  CHECK(has(found, "e.yaml:8:59: error: train.optimizer.lr: -1 is out of range"));
}

TEST_CASE("Errors of a variant are at the line of its patch") {
  const std::string found = errors(kBase +
                                   "variants:\n"
                                   "  moe:\n"
                                   "    model.ffn: {" +
                                   kMoe +
                                   "}\n"
                                   "  bad:\n"
                                   "    extends: moe\n"
                                   "    model.ffn.router.top_k: 9\n"
                                   "  typo:\n"
                                   "    model.ffn.rooter: 3\n"
                                   "  top:\n"
                                   "    modell.d_model: 3\n");
  CHECK(has(found, "e.yaml:14:29: error: model.ffn.router.top_k:"));
  CHECK(has(found, "(in variant bad)"));
  CHECK(has(found, "e.yaml:16:5: error: `model.ffn` has no key `rooter`"));
  CHECK(has(found, "e.yaml:18:5: error: variant `top`: `modell` is no part of a run"));
  CHECK(has(found, "did you mean `model`?"));
}

TEST_CASE("Errors of the base are told once, not once a variant") {
  const std::string found = errors("version: 1\n" + kData + kModel +
                                   "train: {max_steps: 10, batch_tokens: 32, optimizer: {lr: fast}}\n"
                                   "variants:\n  a: {}\n  b: {}\n");
  CHECK(has(found, "`fast` is not a number"));
  CHECK(found.find("`fast` is not") == found.rfind("`fast` is not"));
  CHECK_FALSE(has(found, "in variant"));
}

TEST_CASE("What the base leaves open, variants may give") {
  const std::string base =
      "version: 1\n" + kData + "model: {kind: ffn, d_model: 16, num_layers: 1}\n" + kTrain;
  CHECK(has(errors(base), "`model` needs the key `ffn`"));
  CHECK(errors(base + "variants: {a: {model.ffn: {activation: relu, d_ff: 8}}}\n") == "");
}

TEST_CASE("Variants that extend nothing, or themselves") {
  CHECK(has(errors(kBase + "variants:\n  dense: {}\n  b: {extends: denze}\n"),
            "e.yaml:11:16: error: extends: `denze` is not one of"));
  const std::string circle =
      errors(kBase + "variants:\n  a: {extends: c}\n  b: {extends: a}\n  c: {extends: b}\n");
  CHECK(has(circle, "the variant `a` extends itself"));
  CHECK(has(errors(kBase + "variants: {a: {extends: a}}\n"), "the variant `a` extends itself"));
  CHECK(has(errors(kBase + "variants: [a, b]\n"), "`variants` must be a mapping"));
  CHECK(has(errors(kBase + "variants: {a: 3}\n"), "the variant `a` must be a mapping"));
  CHECK(has(errors(kBase + "variants: {a/b: {}}\n"), "`a/b` cannot name a variant"));
}

TEST_CASE("A twin is solved for by what is given to the loader") {
  const std::string text = kBase + "variants:\n  moe: {model.ffn: {" + kMoe + "}}\n" +
                           "  twin: {twin_of: moe, match: total_params}\n";
  LoadOptions options;
  options.solve_twin = [](RunConfig& twin, const RunConfig& target, const std::string& match) {
    CHECK(match == "total_params");
    CHECK(target.model.ffn.kind == "moe");
    twin.model.ffn.dense.d_ff = 77;
    return std::string("d_ff = 77 is near");
  };
  const Experiment e = load(text, options);
  REQUIRE(e.warnings.size() == 1);
  CHECK(has(e.warnings[0], "e.yaml:11:19: warning: twin_of moe: d_ff = 77 is near"));
  CHECK(run_named(e, "twin-s0").config.model.ffn.dense.d_ff == 77);
  CHECK(has(run_named(e, "twin-s0").resolved_yaml, "d_ff: 77"));
  CHECK(has(errors(kBase + "variants: {a: {twin_of: b}}\n", options), "twin_of: `b` is not one of"));
  CHECK(has(errors(kBase + "variants: {a: {match: none}}\n", options), "match:"));
  options.solve_twin = [](RunConfig&, const RunConfig&, const std::string&) -> std::string {
    fail("no width fits");
  };
  CHECK(has(errors(text, options), "e.yaml:11:19: error: twin_of moe: no width fits"));
}

TEST_CASE("Conditions over several blocks") {
  CHECK(has(errors_with("kind: ffn", "kind: decoder"), "cannot learn from data of kind synthetic"));
  // A condition on a whole block stands at the block.
  CHECK(has(errors_with("max_steps: 10,", ""), "error: train: needs `max_tokens` or `max_steps`"));
  CHECK(has(errors_with("max_steps: 10", "max_steps: 10, max_tokens: 3e6"), "not both"));
  CHECK(has(errors_with("batch_tokens: 32", "batch_tokens: 32, micro_batch_tokens: 5"),
            "batch_tokens 32 is not a multiple of 5"));
  CHECK(has(errors_with("lr: 1e-3}", "lr: 1e-3}, schedule: {warmup_tokens: 5000}"), "does not end within"));
  CHECK(has(errors_with("lr: 1e-3}", "lr: 1e-3}, schedule: {kind: wsd}"), "needs the key `decay_tokens`"));
  CHECK(has(errors_with("lr: 1e-3}", "lr: 1e-3, betas: [0.9]}"), "there are two betas"));
  CHECK(has(errors_with("num_targets: 16}", "num_targets: 16, seq_len: 5}"),
            "not a whole number of sequences"));
}

TEST_CASE("Attention needs widths that divide") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "a.txt") << "some text";
  const auto model = [&](const std::string& keys) {
    std::ofstream(folder.path() / "e.yaml")
        << "version: 1\ndata: {seq_len: 8, domains: [{name: a, path: a.txt}]}\n"
        << "model: {" << keys << ", ffn: {activation: relu, d_ff: 8}}\n"
        << "train: {max_steps: 1, batch_tokens: 8, optimizer: {lr: 1e-3}}\n";
    try {
      load_experiment(folder.path() / "e.yaml", {});
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(model("d_model: 16, num_heads: 4") == "");
  CHECK(has(model("d_model: 10, num_heads: 4"), "model.d_model: 10 is not divisible by num_heads 4"));
  CHECK(has(model("d_model: 16, num_heads: 4, num_kv_heads: 3"), "not divisible by num_kv_heads 3"));
  CHECK(has(model("d_model: 12, num_heads: 4"), "the head width 3 must be even"));
  CHECK(model("d_model: 12, num_heads: 4, position: learned") == "");
  CHECK(has(model("d_model: 16, num_heads: 4, epsilon_outside: true"),
            "model.epsilon_outside: only LayerNorm"));
  CHECK(model("d_model: 16, num_heads: 4, norm: layer, epsilon_outside: true") == "");
}

TEST_CASE("A data file that is missing is named with the package that brings it") {
  const std::string found = errors(
      "version: 1\n"
      "data:\n"
      "  seq_len: 8\n"
      "  domains:\n"
      "    - {name: a, path: /nowhere/a.txt, package: some-text}\n"
      "model: {d_model: 16, num_heads: 2, ffn: {activation: relu, d_ff: 8}}\n"
      "train: {max_steps: 1, batch_tokens: 8, optimizer: {lr: 1e-3}}\n");
  CHECK(has(found, "e.yaml:5:23: error:"));
  CHECK(has(found, "/nowhere/a.txt"));
  CHECK(has(found, "some-text"));
}

TEST_CASE("Nothing in a file, or no mapping, or no file") {
  for (const char* text : {"", "# nothing yet\n", "---\n"}) {
    CHECK(has(errors(text), "e.yaml:1:1: error: the experiment is empty"));
  }
  CHECK(has(errors("- a\n- b\n"), "the file must be a mapping, not a list"));
  CHECK_THROWS_AS(load_experiment("/nowhere/e.yaml", {}), ConfigError);
}

TEST_CASE("Keys of other programs, and keys in the wrong block, are pointed to their place") {
  const auto help = [](const std::string& key) { return errors(kBase + key + ": 2\n"); };
  CHECK(has(help("num_experts_per_tok"), "called `model.ffn.router.top_k` here"));
  CHECK(has(help("moe-router-topk"), "called `model.ffn.router.top_k` here"));
  CHECK(has(help("n_routed_experts"), "called `model.ffn.experts.count` here"));
  CHECK(has(help("num_local_experts"), "called `model.ffn.experts.count` here"));
  CHECK(has(help("capacity_factor"), "called `model.ffn.capacity.factor` here"));
  CHECK(has(help("aux_loss_alpha"), "called `model.ffn.losses.load_balance` here"));
  CHECK(has(help("n_layer"), "called `model.num_layers` here"));
  CHECK(has(help("learning_rate"), "called `train.optimizer.lr` here"));
  CHECK(has(help("batch_tokens"), "`batch_tokens` stands in `train.batch_tokens`"));
  CHECK(has(errors(kBase + "variants: {m: {model.ffn: {" + kMoe + ", top_k: 2}}}\n"),
            "`top_k` stands in `model.ffn.router.top_k`"));
  CHECK(has(errors(kBase + "variants: {m: {model.ffn: {" + kMoe + ", intermediate_size: 2}}}\n"),
            "`intermediate_size` is called"));
}

TEST_CASE("The resolved YAML of a run reads back as the same run") {
  const Experiment e = load(kBase + "variants:\n  dense: {}\n  moe: {model.ffn: {" + kMoe +
                            ", losses: {load_balance: 0.01}, capacity: {factor: 1.25}}}\n");
  for (const Run& run : e.runs) {
    const auto source = yaml::make_source("resolved.yaml", run.resolved_yaml);
    Diagnostics diagnostics;
    RunConfig again;
    read_fields(yaml::parse(source->text, source, diagnostics), again, diagnostics);
    diagnostics.throw_if_errors();
    CHECK(yaml::emit(write_fields(again)) == run.resolved_yaml);
    CHECK(again.train.optimizer.lr == run.config.train.optimizer.lr);
    CHECK(again.model.ffn.kind == run.config.model.ffn.kind);
  }
}

TEST_CASE("Runs are selected by variant, seed and sweep point") {
  const std::string text = kBase +
                           "seeds: [0, 1]\nvariants: {a: {}, b: {}}\ncompare: {baseline: a}\n"
                           "sweep: {grid: {train.optimizer.lr: [1e-3, 2e-3, 3e-3]}}\n";
  const auto selected = [&](const RunSelection& selection) {
    Experiment e = load(text);
    select_runs(e, selection);
    return e;
  };
  CHECK(selected({}).runs.size() == 12);
  CHECK(names(selected({.variants = {"b"}, .seeds = {1}, .points = {0, 2}})) ==
        std::vector<std::string>{"b-s1-p0", "b-s1-p2"});
  const Experiment b = selected({.variants = {"b"}, .seeds = {1}, .points = {}});
  CHECK(b.seeds == std::vector<std::int64_t>{1});
  CHECK(b.variants == std::vector<std::string>{"b"});
  CHECK_FALSE(b.compare.baseline.has_value());
  CHECK(b.points.size() == 3);
  CHECK_THROWS_WITH(selected({.variants = {"aa"}, .seeds = {}, .points = {}}), Contains("known: a or b"));
  CHECK_THROWS_WITH(selected({.variants = {}, .seeds = {7}, .points = {}}),
                    Contains("the experiment has 0, 1"));
  CHECK_THROWS_WITH(selected({.variants = {}, .seeds = {}, .points = {3}}),
                    Contains("there is no sweep point 3"));
}

TEST_CASE("What the environment holds is never expanded again") {
  // A patch on a shorthand first writes it out, resolved.
  const std::string written = "/${env:MOELAB_TEST_SECRET}";
  setenv("MOELAB_TEST_PATH", "${env:MOELAB_TEST_SECRET}", 1);
  setenv("MOELAB_TEST_SECRET", "secret", 1);
  const std::string text = "version: 1\n" + kData + kModel + "  init: \"${env:MOELAB_TEST_PATH}\"\n" + kTrain;
  LoadOptions options;
  options.look_for_data = false;
  for (const char* variants :
       {"variants: {n: {model.init.noise: 0.1}}\n",
        "variants: {n: {model.init: {noise: 0.1}}, m: {extends: n, model.d_model: 16}}\n"}) {
    INFO(variants);
    const Experiment e = load(text + variants, options);
    for (const Run& run : e.runs) CHECK(run.config.model.init->upcycle.ends_with(written));
  }
  options.overrides = {"model.init.noise=0.1"};
  CHECK(load(text, options).runs[0].config.model.init->upcycle.ends_with(written));
  options.overrides = {};
  CHECK(load(text, options).runs[0].config.model.init->upcycle.ends_with(written));
}

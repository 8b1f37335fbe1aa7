// Overrides of the command line and references, where variants and sweeps are concerned.
#include "tests/experiments/config/experiment_text.hpp"
#include "tests/support/catch.hpp"

#include <string>
#include <vector>

using namespace moelab;

TEST_CASE("A reference of one variant is no matter of the others") {
  const std::string text = kBase +
                           "variants:\n  dense: {}\n"
                           "  moe:\n    model.ffn: {" +
                           kMoe + "}\n    train.optimizer.weight_decay: ${model.ffn.experts.count}\n";
  const Experiment e = load(text);
  CHECK(run_named(e, "dense-s0").config.train.optimizer.weight_decay == 0.1);
  CHECK(run_named(e, "moe-s0").config.train.optimizer.weight_decay == 4);
  // What stands around the blocks can be referred to.
  CHECK(run_named(load("seeds: [3]\nname: n\n" + kBase +
                       "description: ${name}\n"
                       "variants: {a: {train.max_steps: '${version}'}}\n"),
                  "a-s3")
            .config.train.max_steps == 1);
}

TEST_CASE("A sweep is given on the command line") {
  for (const char* text :
       {"sweep.grid={train.optimizer.lr: [1e-3, 1e-2]}", "sweep={grid: {train.optimizer.lr: [1e-3, 1e-2]}}",
        "sweep.grid.train.optimizer.lr=[1e-3, 1e-2]"}) {
    INFO(text);
    const Experiment e = load(kBase, {.overrides = {text}, .solve_twin = {}});
    CHECK(names(e) == std::vector<std::string>{"base-s0-p0", "base-s0-p1"});
    CHECK(e.runs[1].config.train.optimizer.lr == 1e-2);
  }
}

TEST_CASE("A dotted key of a variant is overridden on the command line") {
  const std::string text = kBase + "variants:\n  moe:\n    model.ffn: {" + kMoe +
                           "}\n  more:\n    extends: moe\n    model.ffn.router.top_k: 3\n";
  for (const char* change :
       {"variants.more.model.ffn.router.top_k=4", "variants.more={model.ffn.router.top_k: 4}",
        "variants={more: {model.ffn.router: {top_k: 4}}}"}) {
    INFO(change);
    const Experiment e = load(text, {.overrides = {change}, .solve_twin = {}});
    CHECK(has(run_named(e, "more-s0").resolved_yaml, "top_k: 4"));
    CHECK(has(run_named(e, "moe-s0").resolved_yaml, "top_k: 2"));
  }
  CHECK(names(load(kBase, {.overrides = {"variants={v1.5: {}}"}, .solve_twin = {}})) ==
        std::vector<std::string>{"v1.5-s0"});
}

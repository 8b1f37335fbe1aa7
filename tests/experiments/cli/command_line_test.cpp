// What the command line says of what it cannot make out, or would not heed.
#include "tests/experiments/cli/answer.hpp"

#include <string>

using namespace moelab;

TEST_CASE("A command that is not known, or missing, is told with those that there are") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  const auto refused = [&](const std::string& arguments) {
    const Answer answer = moelab_in(folder, arguments);
    INFO(arguments);
    CHECK(answer.code == 2);
    CHECK(answer.out == "");
    return answer.err;
  };
  CHECK_THAT(refused("rnu e.yaml"), Contains("there is no command `rnu`; did you mean `run`?"));
  CHECK_THAT(refused("-q chekc"), Contains("did you mean `check`?"));
  CHECK_THAT(refused("zzzzzzzz"), Contains("there is no command `zzzzzzzz`; known: ") && Contains("compare"));
  CHECK_THAT(refused(""), Contains("a command is missing: ") && Contains("`moelab --help`"));
  CHECK_THAT(refused("bench"), Contains("layer, train or scaling"));
  CHECK_THAT(refused("bench scalling"), Contains("did you mean `bench scaling`?"));
  CHECK_THAT(refused("bench --threads 1 scalling"), Contains("did you mean `bench scaling`?"));
  // The value of an option is no command.
  for (const char* options : {"--seconds 1", "--seconds=1 --threads 1", "--json -q --hdf5 x"})
    CHECK_THAT(refused(std::string("bench ") + options), Contains("a command is missing: layer, train"));
  // Help is that of the command.
  CHECK_THAT(refused("check e.yaml --nothing"), Contains("--nothing") && Contains("`moelab check --help`"));
  CHECK_THAT(refused("bench layer --nothing"), Contains("`moelab bench layer --help`"));
}

TEST_CASE("`help` says what `--help` says") {
  const TemporaryFolder folder;
  for (const std::string command : {"", "run", "check", "plot", "bench", "bench layer", "help"}) {
    INFO(command);
    const Answer help = moelab_in(folder, "help " + command);
    CHECK(help.code == 0);
    CHECK(help.out == moelab_in(folder, command + " --help").out);
  }
  CHECK_THAT(moelab_in(folder, "help run").out, Contains("--resume"));
  const Answer none = moelab_in(folder, "help rnu");
  CHECK(none.code == 2);
  CHECK_THAT(none.err, Contains("did you mean `run`?"));
  CHECK(moelab_in(folder, "help run check").code == 2);
}

TEST_CASE("`packages` has help of its own, and asks for none where `run` is asked for it") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kWithPackage);
  CHECK_THAT(moelab_in(folder, "packages --help").out, Contains("moelab packages run|check"));
  CHECK(moelab_in(folder, "packages run --help").out == "");
  CHECK(moelab_in(folder, "packages run -h").out == "");
  CHECK(moelab_in(folder, "packages run e.yaml -o out -q").out == "some-text\n");
  CHECK(moelab_in(folder, "packages check -q e.yaml log.every_steps=2").out == "some-text\n");
  CHECK(moelab_in(folder, "packages e.yaml").out == "some-text\n");
}

TEST_CASE("Overrides that no file takes are refused") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  const std::string published = "'" MOELAB_TEST_DATA "/counts/bert-base.json' ";
  const Answer refused = moelab_in(folder, "count " + published + "num_hidden_layers=2");
  CHECK(refused.code == 2);
  CHECK(refused.out == "");
  CHECK_THAT(refused.err, Contains("num_hidden_layers=2") && Contains("go to experiments (YAML)"));
  CHECK(moelab_in(folder, "count " + published).code == 0);
  const Answer both = moelab_in(folder, "count --json e.yaml " + published + "model.ffn.d_ff=64");
  CHECK(both.code == 0);
  CHECK(both.out != moelab_in(folder, "count --json e.yaml " + published).out);
}

TEST_CASE("Overrides that change no run are told of, with what comes after them") {
  const TemporaryFolder folder;
  folder.write("swept.yaml", kSmallExperiment + "sweep: {grid: {train.optimizer.lr: [1e-3, 1e-2]}}\n");
  folder.write("varied.yaml", kSmallExperiment +
                                  "variants: {a: {model.ffn.d_ff: 8}, b: {model: {ffn: {d_ff: 16}}}, "
                                  "c: {extends: a, train.optimizer.lr: 1}}\n");
  folder.write("kinds.yaml",
               kSmallExperiment +
                   "variants: {moe: {model.ffn: {kind: moe, experts: {count: 2, activation: relu, d_ff: 8}, "
                   "router: {kind: top_k, top_k: 2}}}}\n");
  folder.write("e.yaml", kSmallExperiment);
  folder.write("mixed.yaml", kSmallExperiment +
                                 "variants: {a: {model.ffn.d_ff: 8, train.max_steps: 5}, b: {}}\n"
                                 "sweep: {grid: {train.max_steps: [6, 8], only: b}}\n");
  folder.write("twins.yaml",
               kSmallExperiment +
                   "variants: {moe: {model.ffn: {kind: moe, experts: {count: 2, activation: relu, d_ff: 8}, "
                   "router: {kind: top_k, top_k: 2}}}, twin: {twin_of: moe, match: total_params}}\n");
  const auto told = [&](const std::string& arguments) {
    const Answer answer = moelab_in(folder, "check -q " + arguments);
    INFO(arguments << answer.err);
    CHECK(answer.code == 0);
    return answer.err;
  };
  CHECK_THAT(told("swept.yaml train.optimizer.lr=9"),
             Contains("warning: train.optimizer.lr=9 changes no run") && Contains("set by the sweep"));
  CHECK_THAT(told("varied.yaml model.ffn.d_ff=64"), Contains("set by variant a, variant b, which"));
  CHECK_THAT(told("kinds.yaml model.ffn.activation=gelu"), Contains("set by variant moe, which"));
  CHECK_THAT(told("varied.yaml 'model={ffn: {d_ff: 64}, d_model: 16}'"),
             Contains("changes no run: model.ffn.d_ff is set by variant a, variant b, which"));
  CHECK_THAT(told("mixed.yaml train.max_steps=7"), Contains("set by the sweep, variant a, which"));
  CHECK_THAT(told("twins.yaml model.ffn.d_ff=64"), Contains("set by variant moe, variant twin, which"));
  // The sweep and the variants are those that there are with the overrides.
  CHECK_THAT(told("e.yaml 'sweep.grid.train.optimizer.lr=[1,2]' train.optimizer.lr=9"),
             Contains("train.optimizer.lr=9 changes no run") && Contains("set by the sweep, which"));
  CHECK_THAT(told("e.yaml 'variants={a: {model.ffn.d_ff: 8}, b: {model.ffn.d_ff: 9}}' model.ffn.d_ff=64"),
             Contains("model.ffn.d_ff=64 changes no run") && Contains("set by variant a, variant b, which"));
  // Some runs take it, it is what the file says anyway, or it changes the sweep itself.
  CHECK(told("varied.yaml train.optimizer.lr=9") == "");
  CHECK(told("swept.yaml train.max_steps=10") == "");
  CHECK(told("swept.yaml 'train={max_steps: 10}'") == "");
  CHECK(told("mixed.yaml model.ffn.d_ff=32") == "");
  CHECK(told("swept.yaml sweep.grid.train.optimizer.lr=[1,2]") == "");
}

TEST_CASE("A sweep point that there is not is refused with those that there are") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  folder.write("swept.yaml", kSmallExperiment + "sweep: {grid: {train.optimizer.lr: [1e-3, 1e-2, 1e-1]}}\n");
  const Answer none = moelab_in(folder, "check e.yaml --point 0");
  CHECK(none.code == 2);
  CHECK_THAT(none.err, Contains("there is no sweep point 0; the experiment has no sweep"));
  CHECK_THAT(moelab_in(folder, "check swept.yaml --point 3").err, Contains("its points are 0 to 2"));
}

TEST_CASE("Other names of precisions are understood, to say ours") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  CHECK_THAT(moelab_in(folder, "check e.yaml train.precision=bf16").err,
             Contains("did you mean `bfloat16`?"));
  CHECK_THAT(moelab_in(folder, "check e.yaml train.precision=FP32").err, Contains("did you mean `float32`?"));
}

TEST_CASE("A twin is warned of where it is only near") {
  const TemporaryFolder folder;
  folder.write(
      "e.yaml",
      kSmallExperiment +
          "variants: {moe: {model.ffn: {kind: moe, experts: {count: 5, activation: relu, d_ff: 16}, "
          "router: {kind: top_k, top_k: 2}}}, twin: {twin_of: moe}, same: {twin_of: base}, base: {}}\n");
  const std::string told = moelab_in(folder, "check -q e.yaml").err;
  CHECK_THAT(told, Contains("warning: twin_of moe: d_ff = ") && !Contains("twin_of base"));
}

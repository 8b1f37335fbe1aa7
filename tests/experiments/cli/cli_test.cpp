// The program as a user calls it.
#include "core/hdf5.hpp"
#include "tests/experiments/cli/answer.hpp"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace moelab;

namespace {

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("A sound file is checked with status 0, and its runs are listed") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment + "seeds: [0, 4]\n");
  const Answer answer = moelab_in(folder, "check e.yaml");
  CHECK(answer.code == 0);
  CHECK(has(answer.out, "2 seeds, 2 runs"));
  CHECK(has(answer.out, "base "));
  CHECK(answer.err == "");
  CHECK(moelab_in(folder, "check e.yaml --quiet").out == "");
  CHECK(has(moelab_in(folder, "check e.yaml seeds=[9]").out, "1 seeds, 1 runs"));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("Five mistakes are all told, with status 2, and nothing is written") {
  const TemporaryFolder folder;
  folder.write("e.yaml",
               "version: 1\n"
               "data: {kind: synthetic, num_features: 16, num_targets: 16}\n"
               "model: {kind: ffn, hidden_size: 16, num_layers: 1, ffn: {activation: rellu, d_ff: 010}}\n"
               "train: {max_step: 10, batch_tokens: 32.5, optimizer: {lr: 1e-3}}\n");
  const Answer answer = moelab_in(folder, "check e.yaml");
  CHECK(answer.code == 2);
  CHECK(answer.out == "");
  CHECK(has(answer.err, "e.yaml:3:20: error: `model` has no key `hidden_size`"));
  CHECK(has(answer.err, "is called `d_model` here"));
  CHECK(has(answer.err, "e.yaml:3:70: error: model.ffn.activation: `rellu`"));
  CHECK(has(answer.err, "did you mean `relu`?"));
  CHECK(has(answer.err, "e.yaml:3:83: error: model.ffn.d_ff: `010`"));
  CHECK(has(answer.err, "e.yaml:4:9: error: `train` has no key `max_step`"));
  CHECK(has(answer.err, "did you mean `max_steps`?"));
  CHECK(has(answer.err, "e.yaml:4:37: error: train.batch_tokens: `32.5` is not an integer"));
  CHECK_FALSE(has(answer.err, "\033"));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("A wrong command line has status 2") {
  const TemporaryFolder folder;
  for (const char* arguments :
       {"", "chekc e.yaml", "check", "check nowhere.yaml", "new nothing", "--nothing", "completion tcsh"}) {
    INFO(arguments);
    const Answer answer = moelab_in(folder, arguments);
    CHECK(answer.code == 2);
    CHECK(answer.out == "");
    CHECK(has(answer.err, "error: "));
  }
  CHECK(moelab_in(folder, "--help").code == 0);
  CHECK(has(moelab_in(folder, "check --help").out, "KEY=VALUE"));
}

TEST_CASE("Every template is a sound experiment, and no file is overwritten") {
  const TemporaryFolder folder;
  for (const std::string name : {"minimal", "dense-vs-moe", "sweep", "scaling"}) {
    INFO(name);
    REQUIRE(moelab_in(folder, "new " + name + " -o " + name + ".yaml").code == 0);
    const Answer answer = moelab_in(folder, "check " + name + ".yaml");
    CHECK(answer.err == "");
    CHECK(answer.code == 0);
    CHECK_FALSE(has(answer.out, "not comparable"));
    if (name == "scaling") {
      CHECK(
          has(answer.out, "every variant agrees with dense at the same point in active_flops within 2.0 %"));
      CHECK(has(answer.out, "compute: forward FLOPs relative to dense at the same point"));
    }
    CHECK(moelab_in(folder, "new " + name).out == read_file(folder.path() / (name + ".yaml")));
    CHECK(has(read_file(folder.path() / (name + ".yaml")), "# yaml-language-server: $schema="));
  }
  const Answer again = moelab_in(folder, "new scaling -o minimal.yaml");
  CHECK(again.code == 2);
  CHECK(has(again.err, "exists already"));
  CHECK_FALSE(has(read_file(folder.path() / "minimal.yaml"), "scaling"));
}

TEST_CASE("Kinds are listed, one or all, as text and as JSON") {
  const TemporaryFolder folder;
  const Answer all = moelab_in(folder, "kinds");
  CHECK(all.code == 0);
  for (const char* part : {"router: model.ffn.router.kind", "expert_choice: ", "Zhou et al. 2022",
                           "copy: ", "load_balance: ", "swiglu: ", "groups.keep", "[tokens]"}) {
    INFO(part);
    CHECK(has(all.out, part));
  }
  const Answer one = moelab_in(folder, "kinds soft");
  CHECK(one.code == 0);
  CHECK(has(one.out, "slots"));
  CHECK_FALSE(has(one.out, "top_k"));
  CHECK(has(moelab_in(folder, "kinds soft --json").out, "\"name\": \"slots\""));
  const Answer none = moelab_in(folder, "kinds sofft");
  CHECK(none.code == 2);
  CHECK(has(none.err, "did you mean `soft`?"));
  CHECK(has(moelab_in(folder, "completion bash").out, "kinds) words='--help --json"));
}

TEST_CASE("Where the machine has no bfloat16 products, a run says that it computes in float32") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment + "eval: {max_tokens: 8}\n");
  REQUIRE(setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1) == 0);
  const Answer answer = moelab_in(folder, "run e.yaml train.precision=bfloat16 train.max_steps=1 -o with");
  const Answer single = moelab_in(folder, "run e.yaml train.max_steps=1 -o without");
  REQUIRE(unsetenv("ONEDNN_MAX_CPU_ISA") == 0);
  CHECK(answer.code == 0);
  CHECK(has(answer.err, "no bfloat16 products; they are computed in float32"));
  CHECK_FALSE(has(single.err, "bfloat16"));
  const std::filesystem::path log = folder.path() / "with" / "e" / "latest" / "base-s0" / "log.txt";
  CHECK(has(read_file(log), "no bfloat16 products"));
}

TEST_CASE("Output that cannot be written is an error, not success") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  REQUIRE(moelab_in(folder, "run e.yaml").code == 0);
  const std::string results = "runs/e/latest/results.h5";
  const std::vector<std::string> commands{"--help",
                                          "kinds",
                                          "version",
                                          "schema",
                                          "man",
                                          "completion bash",
                                          "count e.yaml",
                                          "check e.yaml",
                                          "run e.yaml",
                                          "ls runs",
                                          "show " + results,
                                          "compare " + results,
                                          "recover runs/e/latest"};
  for (const std::string& arguments : commands) {
    INFO(arguments);
    const TemporaryFolder answers;
    const std::string err = (answers.path() / "err").string();
    const std::string command = "cd '" + folder.path().string() + "' && '" MOELAB_BINARY "' " + arguments +
                                " >/dev/full 2>'" + err + "'";
    CHECK(WEXITSTATUS(std::system(command.c_str())) == 1);
    CHECK(has(read_file(err), "standard output: cannot write"));
  }
}

TEST_CASE("A run whose progress nobody reads any more is trained to its end") {
  const TemporaryFolder folder;
  // A twin that is only near is warned of before all else.
  folder.write("e.yaml",
               kSmallExperiment +
                   "variants:\n"
                   "  moe: {model.ffn: {kind: moe, experts: {count: 5, activation: relu, d_ff: 16}, "
                   "router: {kind: top_k, top_k: 2}}}\n"
                   "  twin: {twin_of: moe, match: total_params}\n");
  REQUIRE(has(moelab_in(folder, "check e.yaml").err, "warning: twin_of"));
  // The reader is gone before the first line. The shell waits for both.
  const std::string command = "cd '" + folder.path().string() +
                              "' && { sleep 0.3; '" MOELAB_BINARY "' run e.yaml >out 2>&3; } 3>&1 | true";
  REQUIRE(std::system(command.c_str()) == 0);
  const hdf5::Reader results(folder.path() / "runs" / "e" / "latest" / "results.h5");
  CHECK(results.read<std::int64_t>("summary/steps") == std::vector<std::int64_t>{10, 10});
}

TEST_CASE("A benchmark prints JSON, and writes the same numbers to HDF5") {
  const TemporaryFolder folder;
  const Answer answer = moelab_in(
      folder, "bench layer --shape 32,8,8,4,2 --seconds 0.01 --precision float32 --json --hdf5 b.h5");
  REQUIRE(answer.code == 0);
  const nlohmann::json rows = nlohmann::json::parse(answer.out)["tables"]["layer"];
  REQUIRE(rows.size() == 2);
  const hdf5::Reader file(folder.path() / "b.h5");
  for (const char* column : {"ms", "tokens_per_second", "gflops", "products_gflops", "share", "dense"}) {
    const std::vector<double> values = file.read<double>(std::string("layer/") + column);
    CHECK(rows[0][column].get<double>() == values[0]);
    CHECK(values[0] > 0);
  }
  CHECK(moelab_in(folder, "bench layer --shape 32,8,8,2,4").code == 2);
}

TEST_CASE("Completion knows every command, and bash takes it") {
  const TemporaryFolder folder;
  folder.write("complete.bash",
               moelab_in(folder, "completion bash").out +
                   "COMP_WORDS=(moelab che); COMP_CWORD=1; _moelab; echo \"${COMPREPLY[*]}\"\n"
                   "COMP_WORDS=(moelab new --out); COMP_CWORD=2; _moelab; echo \"${COMPREPLY[*]}\"\n");
  const std::string out = (folder.path() / "out").string();
  REQUIRE(std::system(("bash '" + (folder.path() / "complete.bash").string() + "' >'" + out + "'").c_str()) ==
          0);
  CHECK(read_file(out) == "check\n--output\n");
  CHECK(has(moelab_in(folder, "completion zsh").out, "'check:"));
  CHECK(has(moelab_in(folder, "completion fish").out, "-a check"));
}

TEST_CASE("A folder is no experiment file") {
  const TemporaryFolder folder;
  folder.write("configs/e.yaml", kSmallExperiment);
  for (const char* command : {"check", "run", "count"}) {
    const Answer answer = moelab_in(folder, std::string(command) + " configs");
    INFO(command << ": " << answer.err);
    CHECK(answer.code == 2);
    CHECK(has(answer.err, "configs: "));
  }
  CHECK(has(moelab_in(folder, "check configs").err, "configs: is a folder, not a file"));
}

TEST_CASE("A context that no number holds is refused") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  CHECK(moelab_in(folder, "count e.yaml --context 1000000000").code == 0);
  for (const char* context : {"0", "9000000000000000000", "99999999999999999999"}) {
    INFO(context);
    CHECK(moelab_in(folder, std::string("count e.yaml --context ") + context).code == 2);
  }
}

TEST_CASE("Bash completes the commands below a command and their options") {
  const TemporaryFolder folder;
  folder.write(
      "complete",
      "eval \"$('" MOELAB_BINARY
      "' completion bash)\"\n"
      "complete_line() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _moelab; echo \"${COMPREPLY[*]}\"; }\n"
      "complete_line moelab bench ''\n"
      "complete_line moelab bench s\n"
      "complete_line moelab bench layer --sh\n"
      "complete_line moelab run ''\n");
  const std::string command = "cd '" + folder.path().string() + "' && bash complete > out";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(read_file(folder.path() / "out") == "layer train scaling\nscaling\n--shape\n\n");
}

TEST_CASE("Packages are those of the execution that is gone on with") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kWithPackage);
  const std::string text = folder.write("a.txt", std::string(2000, 'x'));
  REQUIRE(moelab_in(folder, "run e.yaml -o out").code == 0);
  CHECK(moelab_in(folder, "packages --resume out/e/latest").out == "");
  std::filesystem::remove(text);
  CHECK(moelab_in(folder, "packages --resume out/e/latest").out == "some-text\n");
  CHECK(moelab_in(folder, "packages -q --resume=out/e/latest log.every_steps=2").out == "some-text\n");
  CHECK(moelab_in(folder, "packages -q e.yaml").out == "some-text\n");
}

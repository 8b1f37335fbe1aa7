// The commands that read results, as a user calls them.
#include "core/file.hpp"
#include "experiments/results/results_file.hpp"
#include "tests/experiments/cli/answer.hpp"
#include "tests/experiments/results/example_run.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace moelab;

TEST_CASE("commands that read results") {
  const TemporaryFolder folder;
  write_example_results(folder.path());

  CHECK_THAT(moelab_in(folder, "ls .").out, Contains("6 of 6 runs done"));
  CHECK_THAT(moelab_in(folder, "show results.h5").out, Contains("moe-s2"));
  CHECK_THAT(moelab_in(folder, "show results.h5 --run moe-s2").out, Contains("Accounting"));
  const Answer wrong = moelab_in(folder, "show results.h5 --run moe-s9");
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.err, Contains("moe-s9") && Contains("dense-s0"));
  CHECK(moelab_in(folder, "show none.h5").code == 1);

  const Answer compared = moelab_in(folder, "compare results.h5");
  CHECK(compared.code == 0);
  CHECK_THAT(compared.out, Contains("-0.2000"));
  // The link `latest` beside the execution that it names: one file.
  std::filesystem::create_symlink(folder.path(), folder.path() / "latest");
  const Answer twice = moelab_in(folder, "compare results.h5 latest/results.h5");
  CHECK(twice.out == compared.out);
  CHECK_THAT(twice.err, Contains("latest/results.h5 is given twice"));
  CHECK_THAT(moelab_in(folder, "compare results.h5 --baseline moe --format md").out,
             Contains("| dense |") && Contains("+0.2000"));
  const Answer held = moelab_in(folder, "compare results.h5 --fail-if 'delta < 0'");
  CHECK(held.code == 4);
  CHECK_THAT(held.err, Contains("'delta < 0' holds: moe.delta"));
  CHECK(moelab_in(folder, "compare results.h5 --fail-if 'delta > 0' --fail-if 'moe.relative_compute > 2'")
            .code == 0);
  CHECK(moelab_in(folder, "compare results.h5 --fail-if 'delta >> 0'").code == 2);
  CHECK(moelab_in(folder, "compare results.h5 --at never").code == 2);
  CHECK(moelab_in(folder, "compare results.h5 --format xlsx").code == 2);
  CHECK(moelab_in(folder, "compare dense-s0.h5 moe-s0.h5 --fail-if 'delta_ci_low > 0'").code == 1);

  CHECK(moelab_in(folder, "plot results.h5 loss -o loss.svg --x flops --log-x").code == 0);
  CHECK_THAT(read_file(folder.path() / "loss.svg"), Contains("training FLOPs"));
  CHECK(moelab_in(folder, "plot results.h5 pie -o pie.svg").code == 2);
  CHECK(moelab_in(folder, "plot results.h5 loss -o loss.gif").code == 2);
  // Options that a figure does not read are refused, and so are values that nothing is.
  for (const char* arguments :
       {"bars --log-x", "bars --log-y", "scaling --x flops", "tokens --metric eval/loss", "load --at best",
        "loss --layer 1", "loss --run moe-s0", "bars --layer 1", "loss --x bogus", "tokens --layer -7"}) {
    INFO(arguments);
    const Answer refused = moelab_in(folder, std::string("plot results.h5 ") + arguments + " -o refused.svg");
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Contains(std::string(arguments).substr(std::string(arguments).find("--"), 3)));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "refused.svg"));
  CHECK(moelab_in(folder, "plot results.h5 tokens --layer 1 --run moe-s0 -o tokens.svg").code == 0);
  CHECK(moelab_in(folder, "plot results.h5 tokens --layer 9 -o tokens.svg").code == 1);
  CHECK(moelab_in(folder, "report results.h5 -o page.html").code == 0);
  CHECK_THAT(read_file(folder.path() / "page.html"), Contains("<!DOCTYPE html>"));

  for (const char* format : {"csv", "jsonl", "tensorboard"})
    CHECK(moelab_in(folder, std::string("export results.h5 -o out --format ") + format).code == 0);
  CHECK(std::filesystem::exists(folder.path() / "out" / "summary.csv"));
  CHECK(moelab_in(folder, "export results.h5 -o out --format xml").code == 2);

  const Answer merged = moelab_in(folder, "merge dense-s0.h5 moe-s0.h5 moe-s1.h5 -o merged.h5");
  CHECK(merged.code == 0);
  CHECK_THAT(merged.err, Contains("baseline: dense (the first variant: none is named), metric: eval/loss") &&
                             Contains("--baseline NAME"));
  CHECK(moelab_in(folder, "merge dense-s0.h5 moe-s0.h5 -o merged.h5 --baseline none").code == 1);
  CHECK(moelab_in(folder, "merge dense-s0.h5 moe-s0.h5 -o merged.h5 --metric foo").code == 2);
  CHECK_THAT(moelab_in(folder, "merge dense-s0.h5 moe-s0.h5 moe-s1.h5 -o merged.h5 --baseline moe").err,
             Contains("baseline: moe, metric"));
  CHECK_THAT(moelab_in(folder, "ls merged.h5").out, Contains("3 of 3 runs done"));
  CHECK_THAT(moelab_in(folder, "merge moe-s0.h5 results.h5 -o merged.h5").err,
             Contains("moe-s0") && Contains("twice"));
  CHECK(moelab_in(folder, "recover .").code == 1);
}

TEST_CASE("a folder of results stands for the file in it") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  REQUIRE(moelab_in(folder, "run e.yaml").code == 0);
  const std::string execution = "runs/e/latest";
  for (const std::string command : {"show %", "compare %", "plot % loss --metric train/loss -o x.svg",
                                    "report % -o page.html", "export % -o out", "merge % -o merged.h5"}) {
    const auto with = [&](const std::string& named) {
      return moelab_in(folder, std::string(command).replace(command.find('%'), 1, named));
    };
    INFO(command);
    const Answer answer = with(execution);
    CHECK(answer.code == 0);
    CHECK(answer.out == with(execution + "/results.h5").out);
    CHECK(with(execution + "/base-s0").code == 0);
    const Answer above = with("runs/e");
    CHECK(above.code == 1);
    CHECK_THAT(above.err, Contains("runs/e/latest/results.h5"));
    CHECK_THAT(with("runs").err,
               Contains("runs is a folder that has neither results.h5") && Contains("moelab ls runs"));
  }
  CHECK_THAT(moelab_in(folder, "compare " + execution + " " + execution + "/results.h5").err,
             Contains("is given twice"));
}

TEST_CASE("a folder to write into gets the file, and one that is not there is told of") {
  const TemporaryFolder folder;
  write_example_results(folder.path());
  std::filesystem::create_directory(folder.path() / "out");
  CHECK(moelab_in(folder, "report results.h5 -o out").code == 0);
  CHECK_THAT(read_file(folder.path() / "out" / "report.html"), Contains("<!DOCTYPE html>"));
  CHECK(moelab_in(folder, "merge results.h5 -o out/").code == 0);
  CHECK_THAT(moelab_in(folder, "ls out/results.h5").out, Contains("6 of 6 runs done"));
  for (const char* command : {"report results.h5 -o none/", "merge results.h5 -o none/",
                              "bench layer --shape 32,8,8,4,2 --seconds 0.01 --hdf5 none/"}) {
    INFO(command);
    const Answer answer = moelab_in(folder, command);
    CHECK(answer.code == 2);
    CHECK_THAT(answer.err, Contains("there is no folder none/; make it, or give the name of a file"));
  }
}

TEST_CASE("the list of results has short lines, however many variants there are") {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  for (int i = 0; i < 60; ++i) {
    const RunData data = example_run(fmt::format("variant_{}", i), 0, 3.0);
    files.push_back(folder.path() / (data.info.name + ".h5"));
    write_run_file(files.back(), data);
  }
  ExperimentInfo experiment;
  experiment.name = "many";
  write_results_file(folder.path() / "results.h5", experiment, files);
  const std::string out = moelab_in(folder, "ls .").out;
  const std::string line = out.substr(out.find("  many"));
  CHECK_THAT(line, Catch::Matchers::StartsWith("  many: 60 of 60 runs done; eval/loss  variant_0 3.0") &&
                       Contains(" more\n"));
  CHECK(line.size() <= 121);
  CHECK(std::ranges::count(line, '\n') == 1);
}

TEST_CASE("names of a results file do nothing on a terminal, in a document or in a spreadsheet") {
  const TemporaryFolder folder;
  const std::string title = "\x1b]0;owned\a", script = "<script>alert(1)</script>";
  std::vector<std::filesystem::path> files;
  for (const std::string name : {"dense", "moe"}) {
    RunData data = example_run(name, 0, 3.0);
    data.info.variant = (name == "dense" ? "=HYPERLINK(1)" : script) + title;
    data.info.domains = {"prose", "a\n\\immediate\\write18{id}" + title};
    data.info.dataset = title;
    data.info.config_resolved = title + "\n";
    for (AccountingRow& row : data.info.accounting.rows) row.module = row.kind = title;
    for (auto& [key, value] : data.info.provenance) value = title;
    data.status_reason = title;
    if (name == "moe") data.status = RunStatus::failed;
    files.push_back(folder.path() / (name + ".h5"));
    write_run_file(files.back(), data);
  }
  ExperimentInfo experiment;
  experiment.name = "x\n" + title;
  experiment.description = title;
  experiment.metric = "eval/loss/a\n\\immediate\\write18{id}" + title;
  write_results_file(folder.path() / "results.h5", experiment, files);
  for (const char* arguments :
       {"ls .", "show results.h5", "show results.h5 --run moe-s0", "show results.h5 --run none",
        "compare results.h5", "compare results.h5 --metric eval/none", "compare results.h5 --baseline none",
        "compare results.h5 --format csv", "compare results.h5 --format md",
        "compare results.h5 --format latex", "compare results.h5 --format json",
        "compare results.h5 --fail-if 'mean > 0'", "compare dense.h5 moe.h5 --metric eval/loss",
        "plot results.h5 loss --metric none -o x.svg", "recover results.h5", "count results.h5"}) {
    INFO(arguments);
    const Answer answer = moelab_in(folder, arguments);
    INFO(answer.out << answer.err);
    CHECK((answer.out + answer.err).find_first_of("\x1b\a") == std::string::npos);
  }
  const std::string latex = moelab_in(folder, "compare results.h5 --format latex").out;
  CHECK_THAT(latex,
             Contains("eval/loss/a\\textbackslash{}n") && !Contains("\\immediate") && !Contains("\\write"));
  const std::string markdown = moelab_in(folder, "compare results.h5 --format md").out;
  CHECK_THAT(markdown, Contains("script\\>alert(1)") && Contains("did not end") && !Contains("<script>"));
  CHECK_THAT(moelab_in(folder, "compare results.h5 --format csv").out, Contains("\n'=HYPERLINK(1)"));
  CHECK(moelab_in(folder, "export results.h5 -o out").code == 0);
  CHECK_THAT(read_file(folder.path() / "out" / "summary.csv"), Contains(",'=HYPERLINK(1)"));
}

TEST_CASE("commands on runs that failed before their first evaluation") {
  const TemporaryFolder folder;
  folder.write("e.yaml",
               "version: 1\n"
               "name: wild\n"
               "seeds: [0, 1]\n"
               "data: {kind: synthetic, num_features: 16, num_targets: 16}\n"
               "model: {kind: ffn, d_model: 16, num_layers: 1, ffn: {activation: relu, d_ff: 32}}\n"
               "train: {max_steps: 10, batch_tokens: 32, grad_clip: null, optimizer: {kind: sgd, lr: 1e30}}\n"
               "variants: {a: {}, b: {model.ffn.d_ff: 16}}\n");
  const Answer ran = moelab_in(folder, "run e.yaml");
  CHECK(ran.code == 3);
  CHECK_THAT(ran.out, Contains("has a value of eval/loss at the end") && Contains("b-s1: step 2") &&
                          Contains("report.html"));
  const std::string file = "runs/wild/latest/results.h5";
  const std::string one_run = "runs/wild/latest/a-s0/run.h5";
  for (const std::string command :
       {"ls runs", "show %", "show % --run a-s0", "compare %", "compare % --metric eval/bits_per_byte",
        "compare % --at tokens=1e6 --format json", "compare % --format latex", "report % -o page.html",
        "export % -o out", "export % -o out --format jsonl", "export % -o out --format tensorboard",
        "merge runs/wild/latest/a-s0/run.h5 runs/wild/latest/b-s1/run.h5 -o merged.h5",
        "plot % loss --metric train/loss -o loss.svg", "recover runs/wild/latest"}) {
    for (const std::string& name : {file, one_run}) {
      std::string arguments = command;
      if (const std::size_t at = arguments.find('%'); at != std::string::npos) arguments.replace(at, 1, name);
      INFO(arguments);
      const Answer answer = moelab_in(folder, arguments);
      CHECK(answer.code == 0);
      CHECK_THAT(answer.err, !Contains("error"));
    }
  }
  CHECK_THAT(moelab_in(folder, "compare " + file).out, Contains("2 of 2 runs"));
  CHECK_THAT(read_file(folder.path() / "page.html"), Contains("no run has been evaluated"));
  // What cannot be drawn or decided is an error that says so.
  for (const char* kind : {"loss", "bars", "scaling"}) {
    const Answer answer = moelab_in(folder, "plot " + file + " " + kind + " -o x.svg");
    CHECK(answer.code == 1);
    CHECK_THAT(answer.err, Contains("eval/loss"));
  }
  const Answer undecided = moelab_in(folder, "compare " + file + " --fail-if 'delta > 0'");
  CHECK(undecided.code == 1);
  CHECK_THAT(undecided.err, Contains("cannot be decided"));
}

// How `run` ends where it does not end well, as a user sees it.
#include "tests/experiments/cli/answer.hpp"

#include <string>

#include <unistd.h>

using namespace moelab;

namespace {

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("A run that is interrupted says how many runs are done, and how to go on") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment +
                             "variants: {short: {}, long: {train.max_steps: 1000000000}, later: {}}\n"
                             "compare: {metric: train/loss}\n");
  const Answer answer = shell_in(
      folder,
      "\"$MOELAB\" run e.yaml -j 1 -o 'my runs' & run=$!\n"
      "until [ -e 'my runs/e/latest/long-s0/metrics.jsonl' ]; do kill -0 $run || break; sleep 0.02; done\n"
      "kill -INT $run; wait $run");
  CHECK(answer.code == 130);
  const std::string lead = "interrupted: 1 of 3 runs are done; go on with: moelab run --resume ";
  CHECK_THAT(answer.err, Contains(lead + "'my runs/e/2"));
  // It is the last line, and the command in it is one.
  const std::size_t begin = answer.err.find(lead) + lead.size();
  const std::string execution = answer.err.substr(begin, answer.err.find('\n', begin) - begin);
  CHECK(answer.err.ends_with(lead + execution + "\n"));
  CHECK_THAT(moelab_in(folder, "run --dry-run --resume " + execution).out, Contains("3 variants"));
  // What was not begun counts in the list too, with the metric that is compared.
  CHECK_THAT(moelab_in(folder, "ls 'my runs'").out, Contains("e: 1 of 3 runs done; train/loss  short "));
}

TEST_CASE("Runs that diverge are told of as they do and once more at the end") {
  const TemporaryFolder folder;
  folder.write("e.yaml",
               kSmallExperiment + "seeds: [0, 1]\nvariants: {wild: {train.optimizer.lr: 1e30}, b: {}}\n");
  const Answer answer =
      moelab_in(folder, "run e.yaml 'train.optimizer={kind: sgd, lr: 1e-3}' train.grad_clip=null");
  CHECK(answer.code == 3);
  for (const char* run : {"wild-s0: ", "wild-s1: "}) {
    CHECK(count_of(std::string(run) + "diverged: ", answer.err) == 1);
    CHECK(count_of(std::string(run) + "step", answer.out) == 1);
  }
  CHECK(count_of("\n\nwild", answer.out) == 1);
  CHECK_THAT(answer.err, Contains("moelab: 2 of 4 runs are done, 2 diverged") && !Contains("--resume"));
}

TEST_CASE("A reader that has seen enough ends a command without a word") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment);
  REQUIRE(moelab_in(folder, "run e.yaml").code == 0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], 9) == 9);  // a shell knows descriptors of one digit
  for (const int end : ends) close(end);
  for (const char* arguments : {"run -q e.yaml --dry-run", "run -q e.yaml", "check e.yaml", "kinds", "--help",
                                "show runs/e/latest/results.h5"}) {
    INFO(arguments);
    const Answer answer = moelab_in(folder, std::string(arguments) + " >&9");
    CHECK(answer.code == 141);
    CHECK(answer.err == "");
  }
  close(9);
}

TEST_CASE("A model that the machine has no memory for is warned of") {
  const TemporaryFolder folder;
  folder.write("e.yaml", kSmallExperiment + "variants: {small: {}, big: {model.ffn.d_ff: 1000000}}\n");
  const std::string big = " data.num_features=1024 data.num_targets=1024 model.d_model=1024";
  for (const std::string command : {"check -q", "run -q --dry-run"}) {
    INFO(command);
    const Answer answer = moelab_in(folder, command + " e.yaml model.num_layers=1000" + big);
    CHECK(answer.code == 0);
    // 1000 layers of 2 x 1024 x 1,000,000 weights, 16 bytes each.
    CHECK_THAT(answer.err, Contains("warning: big-s0 needs about 32.8TB of memory, and the machine has "));
    CHECK(moelab_in(folder, command + " e.yaml").err == "");
  }
#ifndef MOELAB_SANITIZED  // what sanitizers keep for themselves counts
  const Answer failed = shell_in(folder, "ulimit -v 4000000 && \"$MOELAB\" run -t 1 e.yaml" + big);
  CHECK(failed.code == 3);
  CHECK_THAT(failed.out,
             Contains("big-s0: not enough memory: the run needs about 32.8GB") && !Contains("bad_alloc"));
  CHECK_THAT(failed.err,
             Contains("1 of 2 runs are done, 1 failed; to try again: moelab run --resume runs/e/2"));
#endif
}

#include "tests/experiments/training/run_place.hpp"

#include "core/file.hpp"
#include "experiments/results/results_file.hpp"
#include "tests/support/catch.hpp"

namespace moelab {

std::vector<std::string> RunPlace::arguments(const std::string& output, const std::string& steps) const {
  return {"run",
          (root / "test.yaml").string(),
          "-o",
          output,
          "train.max_steps=" + steps,
          "eval={every_tokens: 256, max_tokens: 64}",
          "train.checkpoint={every_tokens: 256, keep: 2}"};
}

std::filesystem::path RunPlace::latest(const std::string& output) const {
  return root / output / "trainer_test" / "latest";
}

StartOptions RunPlace::told() const {
  StartOptions options;
  options.messages = messages;
  return options;
}

std::string RunPlace::said() const { return read_file(messages); }

int RunPlace::run(const std::string& output) const {
  return exit_code_of(start(arguments((root / output).string()), told()));
}

int RunPlace::resume(const std::string& output, const std::vector<std::string>& overrides) const {
  std::vector<std::string> words{"run", "--resume", latest(output).string()};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return exit_code_of(start(words, told()));
}

void check_same_curves(const std::filesystem::path& one, const std::filesystem::path& two) {
  const ResultsFile a(one / "results.h5"), b(two / "results.h5");
  REQUIRE(a.runs().size() == b.runs().size());
  for (const RunSummary& run : a.runs()) {
    CHECK(b.run(run.run).status == RunStatus::done);
    for (const std::string metric : {"train/loss", "train/grad_norm", "eval/loss"})
      CHECK(b.series(run.run, metric)->value == a.series(run.run, metric)->value);
  }
}

}  // namespace moelab

#include "experiments/results/merge.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/results/recover.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <filesystem>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> runs_in(const fs::path& path) {
  const ResultsFile file(path);
  std::vector<std::string> names;
  for (const RunSummary& r : file.runs()) names.push_back(r.run);
  return names;
}

// An execution of the variants zeta, moe and alpha, in this order in its file.
fs::path write_execution(const fs::path& root, const std::string& yaml, const std::string& baseline) {
  const std::vector<std::string> variants = {"zeta", "moe", "alpha"};
  RunStore store =
      RunStore::create(root, "example", yaml, root, {{}, {"zeta-s0", "moe-s0", "alpha-s0"}, {}, {}, {}});
  ExperimentInfo asked;
  asked.name = "example";
  asked.baseline = baseline;
  asked.metric = "eval/bits_per_byte";
  write_experiment_json(store.info_path(), asked);
  for (const std::string& variant : variants) {
    const RunInfo info = example_info(variant, 0);
    Recorder recorder = Recorder::create(store.create_run(info.name, info.config_resolved), info);
    recorder.record_eval(example_eval(1, 3));
    recorder.write_snapshot();
  }
  return store.folder();
}

std::vector<fs::path> run_files_by_name(const fs::path& execution) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(execution))
    if (fs::exists(entry.path() / "run.h5")) files.push_back(entry.path() / "run.h5");
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("recover and merge keep the order of the experiment file", "[merge]") {
  const TemporaryFolder folder;
  const fs::path execution = write_execution(folder.path() / "runs", "name: example\n", "");
  const fs::path merged = folder.path() / "merged.h5";
  const std::vector<fs::path> by_name = run_files_by_name(execution);
  const std::vector<std::string> order = {"zeta-s0", "moe-s0", "alpha-s0"};

  recover(execution);
  CHECK(runs_in(execution / "results.h5") == order);
  CHECK(baseline_note(ResultsFile(execution / "results.h5")) ==
        "baseline: zeta (the first variant: none is named), metric: eval/bits_per_byte; others with "
        "`moelab compare --baseline NAME --metric NAME`\n");
  merge_results(by_name, merged);
  CHECK(runs_in(merged) == order);
  CHECK(ResultsFile(merged).experiment().metric == "eval/bits_per_byte");
  CHECK(ResultsFile(merged).experiment().config_source == "name: example\n");
  // What lies elsewhere stays where it was named, the others change places among themselves.
  const fs::path other = folder.path() / "other.h5";
  write_run_file(other, example_run("other", 0, 3.0));
  merge_results({by_name[0], other, by_name[2]}, merged);
  CHECK(runs_in(merged) == std::vector<std::string>{"zeta-s0", "other-s0", "alpha-s0"});
  CHECK(ResultsFile(merged).experiment().name == "merged");

  // A run that the execution does not name comes last; without its record all are sorted.
  const RunInfo stray = example_info("beta", 0);
  Recorder::create(RunStore::open(execution).create_run(stray.name, ""), stray).write_snapshot();
  CHECK(RunStore::open(execution).runs() ==
        std::vector<std::string>{"zeta-s0", "moe-s0", "alpha-s0", "beta-s0"});
  replace_file(execution / "execution.json", std::string_view("ruined"));
  recover(execution);
  CHECK(runs_in(execution / "results.h5") ==
        std::vector<std::string>{"alpha-s0", "beta-s0", "moe-s0", "zeta-s0"});
}

TEST_CASE("merge takes the baseline of the experiment, or the one that is named", "[merge]") {
  const TemporaryFolder folder;
  const fs::path merged = folder.path() / "merged.h5";
  const auto baseline_in = [&] {
    return ResultsFile(merged).reader().text_attribute("variants", "baseline");
  };
  const std::vector<fs::path> one =
      run_files_by_name(write_execution(folder.path() / "one", "name: example\n", "moe"));
  merge_results(one, merged);
  CHECK(baseline_in() == "moe");
  CHECK_THAT(baseline_note(ResultsFile(merged)), Contains("baseline: moe, metric: eval/bits_per_byte"));
  merge_results(one, merged, {"alpha", "eval/loss"});
  CHECK(baseline_in() == "alpha");
  CHECK_THAT(baseline_note(ResultsFile(merged)), Contains("baseline: alpha, metric: eval/loss"));
  CHECK_THROWS_WITH(merge_results(one, merged, {"beta", ""}),
                    Contains("no baseline 'beta'; the variants are alpha, moe, zeta"));
  merge_results({one[0], one[2]}, merged);
  CHECK_THAT(baseline_note(ResultsFile(merged)),
             Contains("zeta (the first variant: there is no run of moe)"));

  // Runs of two experiment files are of neither.
  const std::vector<fs::path> two =
      run_files_by_name(write_execution(folder.path() / "two", "name: another\n", "moe"));
  merge_results({one[0], two[1]}, merged);
  CHECK(ResultsFile(merged).experiment().name == "merged");
  CHECK(baseline_in() == "alpha");
}

TEST_CASE("merge takes a metric that a run has, and writes nothing for another", "[merge]") {
  const TemporaryFolder folder;
  const fs::path merged = folder.path() / "merged.h5";
  const fs::path evaluated =
      run_files_by_name(write_execution(folder.path() / "one", "name: example\n", ""))[0];
  const fs::path trained = folder.path() / "trained.h5";
  write_run_file(trained, example_run("trained", 0, 3.0));
  for (const std::string metric : {"foo", "eval/none", "eval/loss/verse", "loss/", "train/loss"}) {
    INFO(metric);
    CHECK_THROWS_AS(merge_results({evaluated}, merged, {"", metric}), ConfigError);
    CHECK_THROWS_WITH(merge_results({evaluated}, merged, {"", metric}),
                      Contains("no run has the metric '" + metric + "'; the metrics are ") &&
                          Contains("eval/bits_per_byte, eval/loss, eval/loss/c++"));
    CHECK_FALSE(fs::exists(merged));
  }
  for (const std::string metric : {"train/loss", "eval/loss/prose"}) {
    merge_results({evaluated, trained}, merged, {"", metric});
    CHECK(ResultsFile(merged).experiment().metric == metric);
  }
}

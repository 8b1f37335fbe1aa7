#include "experiments/results/recover.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/results/experiment_json.hpp"
#include "experiments/results/journal_format.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_store.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <optional>

using namespace moelab;

TEST_CASE("recover rebuilds the files of an experiment after a kill", "[recover]") {
  const TemporaryFolder folder;
  std::optional<RunStore> trainer =
      RunStore::create(folder.path(), "example", "name: example\n", folder.path(), {{"a=1"}, {}, {}, {}});
  const RunStore store = RunStore::open(trainer->folder());
  ExperimentInfo asked;
  asked.name = "example";
  asked.description = "Is it so?";
  asked.baseline = "moe";
  asked.metric = "eval/bits_per_byte";
  asked.confidence = 0.9;
  write_experiment_json(store.info_path(), asked);
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const RunInfo info = example_info("moe", seed);
    Recorder recorder = Recorder::create(store.create_run(info.name, info.config_resolved), info);
    for (std::int64_t step = 1; step <= 3; ++step) {
      recorder.record_train(example_train(step, 3));
      recorder.record_eval(example_eval(step, 3));
    }
  }
  const auto torn = store.run_folder("moe-s1") / "metrics.jsonl";
  replace_file(torn, read_file(torn) + "{\"step\":4,\"tok");

  REQUIRE_THROWS_WITH(recover(store.folder()), Contains("another process trains the runs of"));
  trainer.reset();
  std::vector<RecoveredRun> runs = recover(store.folder());
  REQUIRE(runs.size() == 2);
  for (const RecoveredRun& r : runs) {
    CHECK(r.error.empty());
    CHECK(r.status == "interrupted");
    CHECK(r.last_step == 3);
  }
  const ResultsFile file(store.results_path());
  CHECK(file.experiment().name == "example");
  CHECK(file.experiment().config_source == "name: example\n");
  CHECK(file.experiment().overrides == std::vector<std::string>{"a=1"});
  CHECK(file.experiment().description == "Is it so?");
  CHECK(file.experiment().baseline == "moe");
  CHECK(file.experiment().metric == "eval/bits_per_byte");
  CHECK(file.experiment().confidence == 0.9);
  REQUIRE(file.runs().size() == 2);
  CHECK(file.series("moe-s1", "eval/loss")->value == std::vector<double>{3, 3, 3});

  SECTION("one run by itself") { CHECK(recover(store.run_folder("moe-s0")).at(0).status == "interrupted"); }
  SECTION("one whose journal is ruined is named, the others are recovered") {
    replace_file(torn, std::string_view("ruined\n"));
    runs = recover(store.folder());
    CHECK(runs.at(0).error.empty());
    CHECK_THAT(runs.at(1).error, Contains("metrics.jsonl:1"));
  }
  SECTION("one whose journal has more entries than there are experts is named") {
    std::string line = "{\"step\":1,\"tokens\":2,\"moe/layer_1/expert_tokens\":[0";
    for (int i = 1; i < 100'000; ++i) line += ",0";
    replace_file(torn, sealed_line(line + "]"));
    CHECK_THAT(recover(store.run_folder("moe-s1")).at(0).error,
               Contains("metrics.jsonl:1") && Contains("has 100000 entries, the layer 4 experts"));
  }
  SECTION("one whose journal lacks what a whole run.h5 holds keeps it") {
    const auto snapshot = store.run_folder("moe-s1") / "run.h5";
    const std::string whole = read_file(snapshot);
    const std::string journal = read_file(torn);
    for (std::size_t bytes = 0; bytes < journal.size(); bytes += 1 + journal.find('\n', bytes) - bytes) {
      replace_file(torn, journal.substr(0, bytes));
      const RecoveredRun run = recover(store.folder()).at(1);
      CHECK(run.error.empty());
      CHECK(run.kept);
      CHECK(run.last_step == 3);
      CHECK(read_file(snapshot) == whole);
      CHECK(ResultsFile(store.results_path()).series("moe-s1", "eval/loss")->value.size() == 3);
    }
    replace_file(torn, journal);
    CHECK_FALSE(recover(store.folder()).at(1).kept);
  }
  SECTION("one whose run.h5 cannot be read now is named, and left as it is") {
    const auto snapshot = store.run_folder("moe-s1") / "run.h5";
    std::filesystem::remove(snapshot);
    std::filesystem::create_symlink("run.h5", snapshot);  // it leads in a circle
    CHECK_THAT(recover(store.run_folder("moe-s1")).at(0).error,
               Contains("run.h5") && Contains("symbolic links"));
    CHECK(std::filesystem::is_symlink(snapshot));
  }
  SECTION("one that is being written is left alone") {
    const JournalWriter writer(torn);
    CHECK_THAT(recover(store.run_folder("moe-s1")).at(0).error, Contains("another process writes"));
  }
  SECTION("results.h5 is damaged") {
    replace_file(store.results_path(), std::string_view("ruined"));
    recover(store.folder());
    CHECK(ResultsFile(store.results_path()).experiment().metric == "eval/bits_per_byte");
  }
  SECTION("what was asked is nowhere") {
    std::filesystem::remove(store.results_path());
    replace_file(store.info_path(), std::string_view("{\"name\": \"example\"}"));
    REQUIRE_THROWS_WITH(recover(store.folder()), Contains("experiment.json") && Contains("description"));
  }
  SECTION("a folder of something else") { REQUIRE_THROWS_WITH(recover(folder.path()), Contains("neither")); }
}

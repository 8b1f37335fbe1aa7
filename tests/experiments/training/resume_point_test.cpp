#include "experiments/training/resume_point.hpp"

#include "core/file.hpp"
#include "experiments/results/journal_format.hpp"
#include "experiments/training/checkpoint_folder.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/experiments/training/outcome.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"

#include <fstream>
#include <regex>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// The mixture of the small experiment in one folder, begun, stopped and gone on with.
class Mixture {
 public:
  explicit Mixture(const std::string& checkpoint) : fixture_({"train.checkpoint=" + checkpoint, kLog}) {}

  // Stops when so many steps of this execution are done; 0: goes to the end. Returns where it began.
  std::int64_t run(const std::string& name, int steps, bool resume) {
    int asked = 0;
    std::int64_t begun = -1;
    RunSetup setup{*fixture_.data, folder(name), {}, {}};
    fs::create_directories(setup.folder);
    setup.resume = resume;
    setup.begun = [&](std::int64_t step) { begun = step; };
    setup.note = [&](const std::string& text) { notes += text + "\n"; };
    setup.hooks.stop_requested = [&] { return ++asked == steps; };
    const RunResult result = run_one(fixture_.run("moe"), setup);
    INFO(result.reason);
    REQUIRE(result.status == (steps == 0 ? RunStatus::done : RunStatus::interrupted));
    return begun;
  }

  fs::path folder(const std::string& name) const { return fixture_.folder.path() / name; }

  std::string notes;

 private:
  static constexpr const char* kLog = "log={every_steps: 1, routing_every_steps: 1, sample_tokens: 8}";
  SmallExperiment fixture_;
};

// The lines of a journal.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

// The number of the first line of this step or a later one.
std::size_t first_of(const std::vector<std::string>& lines, int step) {
  std::size_t i = 0;
  while (std::stoi(lines.at(i).substr(std::string("{\"step\":").size())) < step) ++i;
  return i;
}

std::string joined(const std::vector<std::string>& lines, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += lines[i];
  return text;
}

}  // namespace

TEST_CASE("a damaged checkpoint does not push out the one that is written after it", "[resume]") {
  Mixture mixture("{every_tokens: 100_000, keep: 1}");
  mixture.run("run", 9, false);
  const CheckpointFolder checkpoints(mixture.folder("run") / "checkpoints");
  const fs::path newest = checkpoints.path_of(9);
  for (const std::string aside : {"step_9.h5.passed_over", "step_9.h5.passed_over2"}) {
    fs::remove(checkpoints.path_of(4));
    std::ofstream(newest) << aside;
    REQUIRE(checkpoints.steps() == std::vector<std::int64_t>{9});
    CHECK(mixture.run("run", 4, true) == 0);
    CHECK(checkpoints.steps() == std::vector<std::int64_t>{4});
    CHECK(read_file(newest.parent_path() / aside) == aside);
    for (const std::string& told : {mixture.notes, read_file(mixture.folder("run") / "log.txt")})
      CHECK_THAT(told, Contains("passed over: ") && Contains(newest.string() + " is kept as " + aside));
  }
  CHECK(mixture.run("run", 0, true) == 4);
  mixture.run("whole", 0, false);
  check_same(outcome_of(mixture.folder("run")), outcome_of(mixture.folder("whole")));
}

TEST_CASE("a journal that lacks records of a checkpoint is completed from an older one", "[resume]") {
  Mixture mixture("{every_tokens: 256, keep: 2}");
  mixture.run("whole", 0, false);
  const Outcome expected = outcome_of(mixture.folder("whole"));
  mixture.run("stopped", 9, false);
  const fs::path stopped = mixture.folder("stopped");
  REQUIRE(CheckpointFolder(stopped / "checkpoints").steps() == std::vector<std::int64_t>{9, 8});
  const std::string whole = read_file(stopped / "metrics.jsonl");
  const std::vector<std::string> lines = lines_of(whole);
  const std::size_t of_8 = first_of(lines, 8);
  const std::size_t of_9 = first_of(lines, 9);
  REQUIRE(of_9 - of_8 == 3);  // training, routing, evaluation
  const auto with = [&](std::size_t number, const std::string& line) {
    std::vector<std::string> changed = lines;
    changed[number] = line;
    return joined(changed, changed.size());
  };
  const std::string zeros(100, '\0');
  const struct {
    std::string name, journal;
    std::int64_t begins;
    std::string told;
  } cases[] = {
      {"as it was", whole, 9, ""},
      {"and half a line", whole + "{\"step\":10", 9, ""},
      {"a line that is no JSON behind all", whole + "nonsense\n", 9,
       "jsonl:" + std::to_string(lines.size() + 1)},
      {"without step 9", joined(lines, of_9), 8, "step_9.h5 goes with"},
      {"torn in step 9", joined(lines, of_9) + "{\"step\":9,\"to", 8, "step_9.h5 goes with"},
      {"a line of step 9 is no JSON", with(of_9, "nonsense\n"), 8, "jsonl:" + std::to_string(of_9 + 1)},
      {"a line of step 9 is no record", with(of_9, sealed_line("{\"step\":[]")), 8,
       "jsonl:" + std::to_string(of_9 + 1)},
      {"more entries than experts in step 9",
       with(of_9, sealed_line("{\"step\":9,\"tokens\":9,\"moe/layer_0/expert_tokens\":[1,2,3,4,5]")), 8,
       "has 5 entries, the layer 4 experts"},
      {"another key in step 9",
       with(of_9, std::regex_replace(lines[of_9], std::regex("train/loss"), "train/lost")), 8,
       "its crc32 is that of another line"},
      {"another digit in step 9",
       with(of_9, std::regex_replace(lines[of_9], std::regex("loss\":."), "loss\":9")), 8,
       "its crc32 is that of another line"},
      {"without the evaluation of step 8", joined(lines, of_9 - 1), 0, "step_8.h5 goes with"},
      {"zeros in step 3", with(first_of(lines, 3), zeros + "\n"), 0, "step_8.h5 goes with"},
      {"empty", "", 0, "step_8.h5 goes with"},
  };
  for (const auto& c : cases) {
    INFO(c.name);
    fs::copy(stopped, mixture.folder(c.name), fs::copy_options::recursive);
    replace_file(mixture.folder(c.name) / "metrics.jsonl", c.journal);
    mixture.notes.clear();
    CHECK(mixture.run(c.name, 0, true) == c.begins);
    CHECK_THAT(mixture.notes, Contains(c.told));
    CHECK(mixture.notes.empty() == c.told.empty());
    check_same(outcome_of(mixture.folder(c.name)), expected);
    CHECK(fs::exists(mixture.folder(c.name) / "checkpoints" / "step_9.h5.passed_over") == (c.begins < 9));
  }
  fs::remove(stopped / "metrics.jsonl");
  CHECK(mixture.run("stopped", 0, true) == 0);
  check_same(outcome_of(stopped), expected);
}

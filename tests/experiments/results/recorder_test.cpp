#include "experiments/results/recorder.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/results/results_file.hpp"
#include "experiments/results/run_group.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/other_program.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace moelab;

namespace {

void record(Recorder& recorder, std::int64_t first, std::int64_t last) {
  for (std::int64_t step = first; step <= last; ++step) {
    recorder.record_train(example_train(step, 3.0 / static_cast<double>(step)));
    recorder.record_routing(example_routing(step));
    if (step % 2 == 0) recorder.record_eval(example_eval(step, 4.0 / static_cast<double>(step)));
  }
}

std::string dump(const std::filesystem::path& folder) { return read_file(folder / "metrics.jsonl"); }

}  // namespace

TEST_CASE("recorder snapshot holds what was recorded", "[recorder]") {
  const TemporaryFolder folder;
  Recorder recorder = Recorder::create(folder.path(), example_info("moe", 4));
  record(recorder, 1, 5);
  recorder.set_evaluation_statistics(example_statistics());
  recorder.set_routing_samples(example_samples());
  recorder.set_status(RunStatus::done);
  recorder.write_snapshot();

  const ResultsFile file(folder.path() / "run.h5");
  REQUIRE(file.runs().size() == 1);
  const RunSummary& summary = file.runs()[0];
  CHECK(summary.run == "moe-s4");
  CHECK(summary.status == RunStatus::done);
  CHECK(summary.seed == 4);
  CHECK(summary.eval_loss_final == 1.0);
  CHECK(summary.tokens == 500);
  CHECK(summary.train_flops == 3 * 6000.0 * 500);
  CHECK_THAT(summary.tokens_per_second, WithinAbs(1000, 1e-9));
  CHECK(summary.active_compute_ratio_measured == 0.5);
  const Series train = *file.series("moe-s4", "train/loss");
  CHECK(train.value == std::vector<double>{3.0, 1.5, 1.0, 0.75, 0.6});
  CHECK(train.step == std::vector<double>{1, 2, 3, 4, 5});
  CHECK(file.series("moe-s4", "eval/loss/c++")->value == std::vector<double>{2.1, 1.1});
  CHECK_FALSE(file.series("moe-s4", "eval/loss/none"));
  CHECK_FALSE(file.series("moe-s4", "train/none"));

  // (step, layer, expert); the second layer has two experts only.
  const auto tokens = file.reader().read<std::int32_t>("runs/moe-s4/routing/expert_tokens");
  REQUIRE(tokens.size() == 5 * 2 * 4);
  CHECK(std::vector<std::int32_t>(tokens.begin() + 8, tokens.begin() + 16) ==
        std::vector<std::int32_t>{2, 3, 0, 3, 7, 2, -1, -1});
  CHECK(file.reader().dataset("runs/moe-s4/routing/expert_tokens").fill == -1.0);
  const auto dropped = file.reader().read<std::int32_t>("runs/moe-s4/routing/expert_dropped");
  CHECK(std::vector<std::int32_t>(dropped.begin(), dropped.begin() + 8) ==
        std::vector<std::int32_t>{0, 1, 0, 2, 0, 0, -1, -1});
  const auto bias = file.reader().read<float>("runs/moe-s4/routing/expert_bias");
  CHECK(bias[3] == 1.0F / 3);
  CHECK(std::isnan(bias[4]));

  const EvaluationStatistics read = read_statistics(file.reader(), "runs/moe-s4", recorder.data().info);
  CHECK(read.coactivation == example_statistics().coactivation);
  CHECK(read.expert_tokens_by_domain == example_statistics().expert_tokens_by_domain);
  CHECK(read.saturation == example_statistics().saturation);
  const RoutingSamples samples = read_routing_samples(file.reader(), "runs/moe-s4", example_info("moe", 4));
  CHECK(samples.expert_id == example_samples().expert_id);
  CHECK(samples.token_text == example_samples().token_text);
}

TEST_CASE("sampled experts are kept whatever their number", "[recorder]") {
  const TemporaryFolder folder;
  Recorder recorder = Recorder::create(folder.path(), example_info("moe", 1));
  record(recorder, 1, 2);
  RoutingSamples samples = example_samples();
  samples.expert_id.front() = 999'999;
  recorder.set_routing_samples(samples);
  recorder.write_snapshot();
  const hdf5::Reader file(folder.path() / "run.h5");
  CHECK(read_routing_samples(file, "runs/moe-s1", example_info("moe", 1)).expert_id == samples.expert_id);
}

TEST_CASE("recorder resumes at a checkpoint as if nothing had happened", "[recorder]") {
  const TemporaryFolder whole_folder, cut_folder;
  {
    Recorder whole = Recorder::create(whole_folder.path(), example_info("moe", 1));
    record(whole, 1, 6);
    whole.write_snapshot();
  }
  {
    Recorder before = Recorder::create(cut_folder.path(), example_info("moe", 1));
    record(before, 1, 5);  // the checkpoint was saved at step 3
  }
  Recorder after = Recorder::resume(cut_folder.path(), example_info("moe", 1), 3);
  CHECK(after.data().train.size() == 3);
  CHECK(after.data().eval.size() == 1);
  record(after, 4, 6);
  after.write_snapshot();
  CHECK(dump(whole_folder.path()) == dump(cut_folder.path()));
  const hdf5::Reader one(whole_folder.path() / "run.h5"), two(cut_folder.path() / "run.h5");
  for (const char* name :
       {"train/loss", "eval/loss", "routing/load_cv", "routing/expert_tokens", "train/lr"}) {
    INFO(name);
    const std::string path = std::string("runs/moe-s1/") + name;
    CHECK(one.read<double>(path) == two.read<double>(path));
  }
}

TEST_CASE("a record is in the file as soon as it is recorded, without a snapshot or a sync", "[recorder]") {
  const TemporaryFolder folder;
  Recorder recorder = Recorder::create(folder.path(), example_info("moe", 1));
  const auto check_lines = [&](std::int64_t expected) {
    const std::string text = dump(folder.path());  // as another process reads it, or after a SIGKILL
    REQUIRE(std::count(text.begin(), text.end(), '\n') == expected);
    REQUIRE(text.back() == '\n');
    REQUIRE(recorder.num_records() == expected);
  };
  for (std::int64_t step = 1; step <= 3; ++step) {
    recorder.record_train(example_train(step, 1));
    check_lines(3 * step - 2);
    recorder.record_routing(example_routing(step));
    check_lines(3 * step - 1);
    recorder.record_eval(example_eval(step, 1));
    check_lines(3 * step);
    CHECK(recover_run(folder.path()).train.size() == static_cast<std::size_t>(step));
  }
}

// flock() belongs to the open file, which a child process would have too.
TEST_CASE("a program that is started while a journal is open does not keep its lock", "[recorder]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::optional<JournalWriter> journal(path);
  REQUIRE(journal->lock_problem().empty());
  const OtherProgram program;
  CHECK_THROWS_WITH(JournalWriter(path), Contains("another process writes"));
  journal.reset();
  CHECK_NOTHROW(JournalWriter(path));
  CHECK(program.lives());
}

TEST_CASE("recorder makes no group of arrays that are longer than the experts", "[recorder]") {
  RunData data;
  data.info = example_info("moe", 1);
  data.routing.push_back(example_routing(1));
  CHECK_NOTHROW(run_group(data));
  data.routing[0].layers[1].expert_tokens.assign(9, 1);
  CHECK_THROWS_WITH(run_group(data), Contains("expert_tokens of layer 3 has 9 entries instead of 2"));
}

TEST_CASE("recorder: an auxiliary loss that comes later is not a number before, also after a resume",
          "[recorder]") {
  const TemporaryFolder folder;
  const auto record_steps = [](Recorder& recorder, std::int64_t first, std::int64_t last) {
    for (std::int64_t step = first; step <= last; ++step) {
      TrainRecord train = example_train(step, 1);
      train.auxiliary_losses.clear();
      if (step >= 3) train.auxiliary_losses.emplace_back("z", 10.0 * static_cast<double>(step));
      recorder.record_train(train);
    }
    recorder.write_snapshot();
  };
  const auto check = [&](std::size_t steps) {
    const auto z = hdf5::Reader(folder.path() / "run.h5").read<double>("runs/moe-s1/train/aux_z");
    REQUIRE(z.size() == steps);
    CHECK(std::isnan(z[0]));
    CHECK(std::isnan(z[1]));
    for (std::size_t i = 2; i < steps; ++i) CHECK(z[i] == 10.0 * static_cast<double>(i + 1));
  };
  {
    Recorder recorder = Recorder::create(folder.path(), example_info("moe", 1));
    record_steps(recorder, 1, 5);
    check(5);
  }
  Recorder resumed = Recorder::resume(folder.path(), example_info("moe", 1), 4);
  record_steps(resumed, 5, 7);
  check(7);
}

TEST_CASE("recorder says by which convention an auxiliary loss is measured", "[recorder]") {
  const TemporaryFolder folder;
  Recorder recorder = Recorder::create(folder.path(), example_info("moe", 1));
  TrainRecord train = example_train(1, 1);
  train.auxiliary_losses = {{"load_balance", 1},  {"z", 1},       {"importance_cv2", 1},
                            {"load_cv2", 1},      {"entropy", 1}, {"expert_diversity", 1},
                            {"relu_sparsity", 1}, {"my_own", 1}};
  recorder.record_train(train);
  recorder.write_snapshot();
  const hdf5::Reader file(folder.path() / "run.h5");
  // At even f and P = 1/E over k choices: load_balance E E (1/E) (1/E) = 1, entropy log(1/E).
  const std::vector<std::pair<std::string, std::string>> said = {
      {"load_balance", "E sum_e f_e P_e"},       {"load_balance", "f the share of choices"},
      {"load_balance", "1 at even f for any k"}, {"z", "logsumexp(logits)^2"},
      {"importance_cv2", "variance / mean^2"},   {"load_cv2", "smooth load"},
      {"entropy", "-log E at even P"},           {"expert_diversity", "pairwise cosine"},
      {"relu_sparsity", "sum of the weights"},   {"my_own", "auxiliary loss my_own"}};
  for (const auto& [loss, text] : said) {
    const std::string long_name = file.dataset("runs/moe-s1/train/aux_" + loss).meaning.long_name;
    CHECK_THAT(long_name,
               Contains(text) && Contains("; mean over layers and micro-batches, without its weight"));
  }
}

TEST_CASE("recorder refuses records that do not fit", "[recorder]") {
  const TemporaryFolder folder;
  Recorder recorder = Recorder::create(folder.path(), example_info("moe", 1));
  record(recorder, 1, 2);
  REQUIRE_THROWS_WITH(recorder.record_train(example_train(2, 1)),
                      Contains("of step 2 comes after one of step 2"));
  RoutingRecordRow row = example_routing(3);
  row.layers[1].expert_tokens.push_back(1);
  REQUIRE_THROWS_WITH(recorder.record_routing(row),
                      Contains("expert_tokens of layer 3 has 3 entries, the layer 2 experts"));
  row.layers.pop_back();
  REQUIRE_THROWS_WITH(recorder.record_routing(row), Contains("1 layers, there are 2"));
  EvalRecord eval = example_eval(3, 1);
  eval.loss_by_domain.push_back(1);
  REQUIRE_THROWS_WITH(recorder.record_eval(eval), Contains("3 domains, there are 2"));
  REQUIRE_THROWS_WITH(Recorder::create(folder.path(), example_info("moe", 1)), Contains("started before"));
}

TEST_CASE("recorder rebuilds a run from its journal", "[recorder]") {
  const TemporaryFolder folder;
  {
    Recorder recorder = Recorder::create(folder.path(), example_info("moe", 1));
    record(recorder, 1, 2);
    recorder.set_evaluation_statistics(example_statistics());
    recorder.write_snapshot();
    record(recorder, 3, 5);  // then the process is killed
  }
  SECTION("with a snapshot, which gives what the journal does not hold") {
    const RunData data = recover_run(folder.path());
    CHECK(data.train.size() == 5);
    CHECK(data.routing.size() == 5);
    CHECK(data.status == RunStatus::interrupted);
    CHECK(data.statistics.coactivation == example_statistics().coactivation);
    CHECK(data.info.accounting.params_total == 5000);
    CHECK(data.info.provenance == example_info("moe", 1).provenance);
    CHECK(std::isnan(data.info.accounting.params_active_without_embeddings));
  }
  SECTION("with a snapshot that cannot be read") {
    replace_file(folder.path() / "run.h5", std::string_view("ruined"));
    const RunData data = recover_run(folder.path());
    CHECK(data.train.size() == 5);
    CHECK_THAT(data.status_reason, Contains("not readable"));
  }
  SECTION("without a snapshot") {
    std::filesystem::remove(folder.path() / "run.h5");
    CHECK(recover_run(folder.path()).train.size() == 5);
  }
  SECTION("without who it is") {
    std::filesystem::remove(folder.path() / "run.json");
    REQUIRE_THROWS_WITH(recover_run(folder.path()), Contains("run.json"));
  }
}

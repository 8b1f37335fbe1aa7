#include "experiments/results/journal.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "experiments/results/journal_format.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include <sys/wait.h>
#include <unistd.h>

using namespace moelab;

namespace {

RunData empty_run() {
  RunData data;
  data.info = example_info("moe", 0);
  return data;
}

void write_example(const std::filesystem::path& path, std::int64_t steps) {
  JournalWriter journal(path);
  const RunInfo info = example_info("moe", 0);
  for (std::int64_t step = 1; step <= steps; ++step) {
    journal.append(example_train(step, 1.0 / static_cast<double>(step)));
    journal.append(example_eval(step, 2.0 / static_cast<double>(step)), info.domains);
    journal.append(example_routing(step), info.moe_layers);
  }
}

}  // namespace

TEST_CASE("journal numbers come back with the same bits", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  const std::vector<double> values = {0.1,
                                      1.0 / 3.0,
                                      -0.0,
                                      5e-324,
                                      std::numeric_limits<double>::max(),
                                      std::nextafter(1.0, 2.0),
                                      1e22,
                                      9007199254740993.0,
                                      123456789012345680.0};
  {
    JournalWriter journal(path);
    for (std::size_t i = 0; i < values.size(); ++i)
      journal.append(example_train(static_cast<std::int64_t>(i) + 1, values[i]));
  }
  RunData data = empty_run();
  read_journal(path, data);
  REQUIRE(data.train.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(data.train[i].loss == values[i]);
    CHECK(std::signbit(data.train[i].loss) == std::signbit(values[i]));
    CHECK(data.train[i].lr == 1e-3 / 3);
  }
}

TEST_CASE("journal keeps every part of a record", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  write_example(path, 3);
  RunData data = empty_run();
  read_journal(path, data);
  REQUIRE(data.train.size() == 3);
  REQUIRE(data.eval.size() == 3);
  REQUIRE(data.routing.size() == 3);
  CHECK(data.train[1].auxiliary_losses == std::vector<std::pair<std::string, double>>{{"load_balance", 1.5}});
  CHECK(data.train[1].grad_norm == 0.7);
  CHECK(std::isnan(data.train[2].grad_norm));
  CHECK(data.eval[0].loss_by_domain == std::vector<double>{1.9, 2.1});
  CHECK(data.eval[2].tokens == 300);
  const LayerRouting& wide = data.routing[2].layers[0];
  CHECK(wide.expert_tokens == std::vector<std::int32_t>{3, 4, 0, 3});
  CHECK(wide.expert_bias == std::vector<float>{0.001F, -0.001F, 0.0F, 1.0F / 3});
  CHECK(wide.load_cv == 0.25);
  CHECK(std::isnan(wide.margin));
  CHECK(data.routing[2].layers[1].expert_bias.empty());
  CHECK(data.routing[2].layers[1].load_cv == 1.0 / 3.0);
}

TEST_CASE("journal writes values that are not finite as null", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  {
    JournalWriter journal(path);
    journal.append(example_train(1, std::numeric_limits<double>::infinity()));
    journal.append(example_train(3, std::numeric_limits<double>::quiet_NaN()));
  }
  const std::string text = read_file(path);
  CHECK(text.find("\"train/loss\":null") != std::string::npos);
  CHECK(text.find("inf") == std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
  RunData data = empty_run();
  read_journal(path, data);
  CHECK(std::isnan(data.train.at(0).loss));
  CHECK(std::isnan(data.train.at(1).loss));
}

TEST_CASE("journal torn at any byte gives the complete lines and can be gone on with", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  write_example(path, 2);
  const std::string whole = read_file(path);
  for (std::size_t bytes = 0; bytes <= whole.size(); bytes += 37) {
    INFO("torn after " << bytes << " of " << whole.size() << " bytes");
    const std::string part = whole.substr(0, bytes);
    replace_file(path, part);
    const auto lines = static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n'));
    RunData data = empty_run();
    read_journal(path, data);
    REQUIRE(data.train.size() + data.eval.size() + data.routing.size() == lines);
    JournalWriter(path).append(example_train(9, 0.5));
    RunData more = empty_run();
    read_journal(path, more);
    REQUIRE(more.train.size() == data.train.size() + 1);
    REQUIRE(more.train.back().step == 9);
  }
}

TEST_CASE("journal complete lines that are no records are errors with their number", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  RunData data = empty_run();
  replace_file(path, sealed_line("{\"step\":1,\"tokens\":2,\"train/loss\":1") + "nonsense\n");
  REQUIRE_THROWS_WITH(read_journal(path, data), Contains("metrics.jsonl:2 is not a record"));
  for (const char* step : {"\"x\"", "1e30", "1.5", "25999999999999999999"}) {
    INFO(step);
    replace_file(path, sealed_line(fmt::format("{{\"step\":{},\"tokens\":2,\"train/loss\":1", step)));
    REQUIRE_THROWS_WITH(read_journal(path, data), Contains("metrics.jsonl:1 is not a record"));
  }
}

TEST_CASE("journal lines end with their sum, and another bit anywhere is found", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  // The sum by Python's zlib.crc32.
  CHECK(sealed_line("{\"step\":1,\"tokens\":2,\"train/loss\":0.5") ==
        "{\"step\":1,\"tokens\":2,\"train/loss\":0.5,\"crc32\":3638297160}\n");
  write_example(path, 1);
  const std::string whole = read_file(path);
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    for (const int bit : {0, 1, 4}) {
      INFO("bit " << bit << " of byte " << byte << " of " << whole.size());
      std::string changed = whole;
      changed[byte] = static_cast<char>(changed[byte] ^ (1 << bit));
      std::ofstream(path, std::ios::binary) << changed;
      RunData data = empty_run();
      const JournalEnd end = read_journal_until(path, 1, data);
      // Without its line break the last line is torn, and no problem.
      CHECK(end.bytes < whole.size());
      CHECK(end.problem.empty() == (byte == whole.size() - 1));
    }
  }
}

TEST_CASE("journal arrays of another length than there are experts are errors with file and line",
          "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  for (const char* statistic :
       {"expert_tokens", "expert_dropped", "router_probability_mean", "expert_bias"}) {
    INFO(statistic);
    const auto journal_of = [&](const char* entries) {
      replace_file(path, sealed_line("{\"step\":1,\"tokens\":2,\"train/loss\":1") +
                             sealed_line(fmt::format("{{\"step\":1,\"tokens\":2,\"moe/layer_1/{}\":[{}]",
                                                     statistic, entries)));
      RunData data = empty_run();
      read_journal(path, data);
      return data;
    };
    for (const char* entries : {"1,2,3,4,5,6,7,8,9", "1,2,3"})
      CHECK_THROWS_WITH(journal_of(entries), Contains("metrics.jsonl:2 is not a record") &&
                                                 Contains(fmt::format("layer_1/{} has ", statistic)));
    CHECK(journal_of("1,2,3,4").routing.size() == 1);
    CHECK(journal_of("").routing.size() == 1);
  }
}

TEST_CASE("journal drops what comes after a step", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  write_example(path, 4);
  {
    JournalWriter journal(path);
    RunData before = empty_run();
    const JournalEnd end = read_journal_until(path, 2, before);
    CHECK(end.problem.empty());
    CHECK(before.train.size() == 2);
    journal.cut(end.bytes);
    journal.append(example_train(3, 7));
  }
  RunData data = empty_run();
  read_journal(path, data);
  REQUIRE(data.train.size() == 3);
  CHECK(data.train[2].loss == 7);
  CHECK(data.eval.back().step == 2);
}

TEST_CASE("journal refuses a second writer", "[journal]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  const JournalWriter journal(path);
  REQUIRE_THROWS_WITH(JournalWriter(path), Contains("another process writes"));
}

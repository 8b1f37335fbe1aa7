#include "experiments/results/export.hpp"

#include "core/file.hpp"
#include "experiments/results/describe.hpp"
#include "experiments/results/tensorboard.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

using namespace moelab;

TEST_CASE("export to csv and jsonl", "[export]") {
  const TemporaryFolder folder;
  const ResultsFile file(write_example_results(folder.path()));
  export_csv(file, folder.path() / "csv");
  const std::string csv = read_file(folder.path() / "csv" / "moe-s1.csv");
  CHECK_THAT(csv, Contains("step,tokens,name,value\n") &&
                      Contains("\n3,300,moe/layer_3/load_cv,0.3333333333333333\n") &&
                      Contains("\n1,100,train/grad_norm,\n"));
  const std::string summary = read_file(folder.path() / "csv" / "summary.csv");
  CHECK(std::count(summary.begin(), summary.end(), '\n') == 7);

  export_jsonl(file, folder.path() / "jsonl");
  const std::string lines = read_file(folder.path() / "jsonl" / "moe-s1.jsonl");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 5);
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  CHECK(first.at("step") == 1);
  CHECK(first.at("train/grad_norm").is_null());
  CHECK((first.contains("train/time") && first.contains("eval/time") && !first.contains("time")));
  CHECK(first.at("eval/loss/c++").get<double>() == file.series("moe-s1", "eval/loss/c++")->value[0]);
}

TEST_CASE("export to TensorBoard checks its bytes as RFC 3720 does", "[export]") {
  CHECK(tensorboard::crc32c("123456789") == 0xe3069283U);
  CHECK(tensorboard::crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(tensorboard::crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
}

TEST_CASE("export to TensorBoard a second time replaces the first", "[export]") {
  const TemporaryFolder folder;
  const std::filesystem::path results = write_example_results(folder.path());
  export_tensorboard(ResultsFile(results), folder.path() / "tb");
  // Results of a later time, as after --resume.
  std::filesystem::last_write_time(results,
                                   std::filesystem::last_write_time(results) + std::chrono::hours(1));
  export_tensorboard(ResultsFile(results), folder.path() / "tb");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path() / "tb" / "moe-s0"), {}) == 1);
}

TEST_CASE("what is in a file or folder is said for people", "[describe]") {
  const TemporaryFolder folder;
  const ResultsFile file(write_example_results(folder.path()));
  const std::string text = describe_file(file);
  CHECK_THAT(text, Contains("example") && Contains("moe-s2") && Contains("done") && Contains("2.8400"));
  // At the last record expert 2 of 4 has no token (dead_fraction 0.25) and 1 % is dropped.
  CHECK_THAT(text, Contains("load CV") && Contains("0.250") && Contains("1.00 %"));
  const std::string run = describe_run(file, "moe-s2");
  CHECK_THAT(run, Contains("layers.1.ffn") && Contains("hostname: somewhere") && Contains("version: 1"));
  const auto health = routing_health(file, "moe-s2");
  REQUIRE(health.size() == 2);
  CHECK(health[1].load_cv == 0.2);
  CHECK(routing_health(file, "dense-s0").empty());

  std::filesystem::create_directories(folder.path() / "other" / "run-s0");
  replace_file(folder.path() / "other" / "run-s0" / "run.h5", std::string_view("nonsense"));
  const std::string list = list_results(folder.path(), 80);
  CHECK_THAT(
      list, Contains("6 of 6 runs done") && Contains("dense 3.0167  moe 2.8167") && Contains("not readable"));
  // Means by what is no metric cannot be, the runs are listed all the same.
  ExperimentInfo info;
  info.name = "odd";
  info.metric = "foo";
  const std::filesystem::path odd = folder.path() / "odd.h5";
  write_results_file(odd, info, {file.path()});
  CHECK_THAT(list_results(odd, 80), Contains("odd: 6 of 6 runs done; no means: ") &&
                                        Contains("'foo' is no metric") && !Contains("not readable"));
  REQUIRE_THROWS_WITH(list_results(folder.path() / "none", 80), Contains("no file or folder"));
}

#include "experiments/results/run_store.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fstream>

using namespace moelab;
namespace fs = std::filesystem;

TEST_CASE("run store names are harmless path components", "[run_store]") {
  CHECK(sanitised_name("moe_e8k2") == "moe_e8k2");
  CHECK(sanitised_name("../../etc/passwd") == "_._.._etc_passwd");
  CHECK(sanitised_name("-rf") == "_rf");
  CHECK(sanitised_name(".hidden") == "_hidden");
  CHECK(sanitised_name("a b/c\n*") == "a_b_c__");
  CHECK(sanitised_name(std::string(500, 'x')).size() == 100);
  REQUIRE_THROWS_WITH(sanitised_name(""), Contains("empty"));
}

TEST_CASE("run store lays out an experiment", "[run_store]") {
  const TemporaryFolder folder;
  // A line break in an override does not make two of it.
  const ExecutionRecord record{{"a.b=1", "c=2\nd=3"}, {"a-s1"}, {"b-s1"}, {{"w", "/w/step_1.h5"}}};
  const RunStore store = RunStore::create(folder.path(), "my test", "name: x\n", "/where", record);
  const fs::path experiment = folder.path() / "my_test";
  CHECK(store.folder().parent_path() == experiment);
  CHECK(fs::is_symlink(experiment / "latest"));
  CHECK(fs::equivalent(experiment / "latest", store.folder()));
  CHECK(fs::read_symlink(experiment / "latest").is_relative());

  const RunStore second = RunStore::create(folder.path(), "my test", "name: x\n", "/where", {});
  CHECK(second.folder() != store.folder());
  CHECK(fs::equivalent(experiment / "latest", second.folder()));

  const fs::path run = store.create_run("dense-s0", "resolved: true\n");
  store.create_run("a-s1", "");
  CHECK(read_file(run / "resolved.yaml") == "resolved: true\n");
  CHECK(fs::is_directory(run / "checkpoints"));
  const RunStore again = RunStore::open(store.folder());
  CHECK(again.runs() == std::vector<std::string>{"a-s1", "dense-s0"});
  CHECK(again.run_files().empty());
  CHECK(again.experiment_yaml() == "name: x\n");
  CHECK(again.record() == record);
  CHECK(again.source_folder() == "/where");
  CHECK(fs::equivalent(RunStore::open(experiment / "latest").folder(), second.folder()));
  // Nothing beside the two timestamps and the link, nothing outside.
  CHECK(std::distance(fs::directory_iterator(experiment), {}) == 3);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("run store has one process that works in an execution", "[run_store]") {
  const TemporaryFolder folder;
  std::optional<RunStore> first = RunStore::create(folder.path(), "x", "", "/where", {});
  const fs::path path = first->folder();
  RunStore second = RunStore::open(path);
  REQUIRE_THROWS_WITH(second.lock(), Contains("another process trains the runs of " + path.string()));
  first.reset();
  second.lock();
  second.lock();  // it has it
  REQUIRE_THROWS_WITH(RunStore::open(path).lock(), Contains("another process"));
}

TEST_CASE("run store tells of a record that is missing or damaged", "[run_store]") {
  const TemporaryFolder folder;
  const RunStore store = RunStore::create(folder.path(), "x", "", "/where", {});
  std::ofstream(store.folder() / "execution.json") << R"({"version": 2, "overrides": [1]})";
  REQUIRE_THROWS_WITH(store.record(), Contains("execution.json is damaged"));
  // The first files had no version, and their journals no sums.
  for (const char* other : {R"({"overrides": []})", R"({"version": 3, "overrides": []})"}) {
    std::ofstream(store.folder() / "execution.json") << other;
    REQUIRE_THROWS_WITH(store.record(), Contains("begun by another version") && Contains("not 2"));
  }
  fs::remove(store.folder() / "execution.json");
  REQUIRE_THROWS_WITH(store.record(), Contains("earlier version"));
}

TEST_CASE("run store refuses to leave its folder", "[run_store]") {
  const TemporaryFolder folder;
  const RunStore store = RunStore::create(folder.path(), "x", "", "/where", {});
  REQUIRE_THROWS_WITH(store.create_run("../y", ""), Contains("'../y' is no name of a run"));
  REQUIRE_THROWS_WITH(RunStore::open(folder.path()), Contains("no folder of an experiment"));
  REQUIRE_THROWS_WITH(RunStore::open(folder.path() / "none"), Contains("cannot open"));
  std::ofstream(folder.path() / "file") << "x";
  REQUIRE_THROWS_WITH(RunStore::create(folder.path() / "file", "x", "", "/where", {}),
                      Contains("cannot make the folder"));
}

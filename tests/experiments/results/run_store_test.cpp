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
  const RunStore store = RunStore::create(folder.path(), "my test", "name: x\n", {"a.b=1", "c=2"});
  const fs::path experiment = folder.path() / "my_test";
  CHECK(store.folder().parent_path() == experiment);
  CHECK(fs::is_symlink(experiment / "latest"));
  CHECK(fs::equivalent(experiment / "latest", store.folder()));
  CHECK(fs::read_symlink(experiment / "latest").is_relative());

  const RunStore second = RunStore::create(folder.path(), "my test", "name: x\n", {});
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
  CHECK(again.overrides() == std::vector<std::string>{"a.b=1", "c=2"});
  CHECK(fs::equivalent(RunStore::open(experiment / "latest").folder(), second.folder()));
  // Nothing beside the two timestamps and the link, nothing outside.
  CHECK(std::distance(fs::directory_iterator(experiment), {}) == 3);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("run store refuses to leave its folder", "[run_store]") {
  const TemporaryFolder folder;
  const RunStore store = RunStore::create(folder.path(), "x", "", {});
  REQUIRE_THROWS_WITH(store.create_run("../y", ""), Contains("'../y' is no name of a run"));
  REQUIRE_THROWS_WITH(RunStore::open(folder.path()), Contains("no folder of an experiment"));
  REQUIRE_THROWS_WITH(RunStore::open(folder.path() / "none"), Contains("cannot open"));
  std::ofstream(folder.path() / "file") << "x";
  REQUIRE_THROWS_WITH(RunStore::create(folder.path() / "file", "x", "", {}),
                      Contains("cannot make the folder"));
}

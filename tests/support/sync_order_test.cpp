// What must be on the disk before what, should the power fail: fsync() and fdatasync() of this program note
// it. And a disk that is full only when it is synced, as network file systems are: fsync() fails on demand.
#include "core/file.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cerrno>
#include <string>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> synced;       // names of the files, in order
std::vector<std::uintmax_t> unsynced;  // bytes of the journal that were not on the disk, at each of them
std::uintmax_t journal_on_disk = 0;
int fsync_error = 0;  // 0: syncing works

void note(int descriptor) {
  const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor));
  const fs::path folder =
      path.parent_path().filename() == "checkpoints" ? path.parent_path().parent_path() : path.parent_path();
  const fs::path journal = folder / "metrics.jsonl";
  if (!fs::is_regular_file(path) || !fs::exists(journal)) return;
  if (path == journal) journal_on_disk = fs::file_size(journal);
  synced.push_back(path.filename());
  unsynced.push_back(fs::file_size(journal) - journal_on_disk);
}

}  // namespace

extern "C" int fsync(int descriptor) {
  if (fsync_error != 0) {
    errno = fsync_error;
    return -1;
  }
  note(descriptor);
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

extern "C" int fdatasync(int descriptor) {
  note(descriptor);
  return static_cast<int>(syscall(SYS_fdatasync, descriptor));
}

TEST_CASE("the journal is on the disk before the checkpoints and snapshots that go with it", "[sync_order]") {
  const SmallExperiment fixture({"train.checkpoint={every_tokens: 256, keep: 2}", "log.every_steps=1"});
  const fs::path folder = fixture.folder.path() / "run";
  fs::create_directories(folder);
  synced.clear();
  unsynced.clear();
  journal_on_disk = 0;
  REQUIRE(run_one(fixture.run("moe"), RunSetup{*fixture.data, folder, {}, {}}).status == RunStatus::done);
  int checkpoints = 0;
  int snapshots = 0;
  for (std::size_t i = 0; i < synced.size(); ++i) {
    INFO(synced[i] << ", file " << i << " of " << synced.size());
    const bool is_checkpoint = synced[i].rfind("step_", 0) == 0;
    const bool is_snapshot = synced[i].rfind("run.h5", 0) == 0;
    if (is_checkpoint || is_snapshot) CHECK(unsynced[i] == 0);
    checkpoints += is_checkpoint ? 1 : 0;
    snapshots += is_snapshot ? 1 : 0;
  }
  CHECK(checkpoints == 6);
  CHECK(snapshots == 4);  // at the start, at two evaluations, at the end
  CHECK(journal_on_disk == fs::file_size(folder / "metrics.jsonl"));
}

TEST_CASE("a disk that is full when it syncs is told of with its reason, and the old file stays",
          "[sync_order]") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "file";
  replace_file(file, std::string_view("old"));
  fsync_error = ENOSPC;
  const auto replace = [&] { replace_file(file, std::string_view("new")); };
  CHECK_THROWS_WITH(replace(), Contains(file.string()) && Contains("No space left on device"));
  fsync_error = 0;
  CHECK(read_file(file) == "old");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

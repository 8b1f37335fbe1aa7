// A file system without locks, as some network file systems are: flock() of this program fails on demand, for
// its libraries too.
#include "core/damaged_file.hpp"
#include "core/hdf5.hpp"
#include "experiments/results/journal.hpp"
#include "experiments/results/recorder.hpp"
#include "experiments/training/load_execution.hpp"
#include "experiments/training/run_experiment.hpp"
#include "experiments/training/run_one.hpp"
#include "tests/experiments/training/small_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/contents.hpp"
#include "tests/support/temporary_folder.hpp"

#include <atomic>
#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

constexpr int kNotSupported = 524;  // ENOTSUPP of the kernel, which some network file systems let through

std::atomic<int> flock_error{0};  // 0: locks work
std::atomic<int> flock_calls{0};
std::atomic<bool> only_journals{false};

bool is_journal(int descriptor) {
  return fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor)).filename() == "metrics.jsonl";
}

// Locks fail as long as it lives.
struct NoLocks {
  explicit NoLocks(int error) {
    flock_calls = 0;
    flock_error = error;
  }
  ~NoLocks() { flock_error = 0; }
  NoLocks(const NoLocks&) = delete;
  NoLocks& operator=(const NoLocks&) = delete;
};

hdf5::Group group_of(double value) {
  hdf5::Group root;
  root.series("loss", "step", std::vector<double>{value}, {"nat", "loss"});
  return root;
}

}  // namespace

extern "C" int flock(int descriptor, int operation) noexcept {
  ++flock_calls;
  if (flock_error == 0 || (only_journals && !is_journal(descriptor)))
    return static_cast<int>(syscall(SYS_flock, descriptor, operation));
  errno = flock_error;
  return -1;
}

TEST_CASE("without locks, reading a results file says at once what helps, and writing leaves the old file",
          "[no_locks]") {
  for (const int error : {ENOLCK, kNotSupported}) {
    INFO(error);
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "a.h5";
    flock_calls = 0;
    hdf5::write_file(path, group_of(1));
    CHECK(hdf5::Reader(path).read<double>("loss") == std::vector<double>{1});
    REQUIRE(flock_calls > 0);  // the library's calls come here
    {
      const NoLocks none(error);
      CHECK_THROWS_WITH(hdf5::Reader(path), Contains(path.string()) && Contains("HDF5_USE_FILE_LOCKING") &&
                                                Contains(fmt::format("errno = {}", error)));
      CHECK(flock_calls == 1);
      flock_calls = 0;  // nor is it tried again when writing, where the new file is read back
      CHECK_THROWS_WITH(hdf5::write_file(path, group_of(2)),
                        Contains(path.string()) && Contains("HDF5_USE_FILE_LOCKING"));
      CHECK(flock_calls == 1);
    }
    CHECK_FALSE(fs::exists(path.string() + ".tmp"));
    CHECK(hdf5::Reader(path).read<double>("loss") == std::vector<double>{1});
  }
}

TEST_CASE("without locks, a journal is written and says that nothing keeps a second writer away",
          "[no_locks]") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "metrics.jsonl";
  {
    const NoLocks none(ENOLCK);
    JournalWriter journal(path);
    CHECK_THAT(journal.lock_problem(), Contains(path.string()) && Contains("No locks available"));
    const JournalWriter moved(std::move(journal));
    CHECK_FALSE(moved.lock_problem().empty());
  }
  CHECK(JournalWriter(path).lock_problem().empty());
}

TEST_CASE("without locks, a run notes that it is not guarded", "[no_locks]") {
  const SmallExperiment fixture({"train.max_steps=3"});
  const fs::path folder = fixture.folder.path() / "run";
  fs::create_directories(folder);
  std::string notes;
  RunSetup setup{*fixture.data, folder, {}, {}};
  setup.note = [&](const std::string& text) { notes += text; };
  // HDF5 as if HDF5_USE_FILE_LOCKING=FALSE had been set: it reads that once, before this test.
  only_journals = true;
  const NoLocks none(ENOLCK);
  const RunResult result = run_one(fixture.run("dense"), setup);
  only_journals = false;
  INFO(result.reason);
  CHECK(result.status == RunStatus::done);
  CHECK_THAT(notes, Contains("metrics.jsonl cannot be locked"));
}

TEST_CASE("without locks, resuming says at once what helps, and changes nothing", "[no_locks]") {
  const SmallExperiment fixture({"train.checkpoint={every_tokens: 256, keep: 2}"});
  RunOptions options;
  options.output_root = fixture.folder.path() / "runs";
  options.jobs = 1;
  options.quiet = true;
  int asked = 0;
  options.stop_requested = [&] { return ++asked > 16; };  // the first run is done, the second at step 4
  options.resume = run_experiment(fixture.experiment, options).folder;
  options.stop_requested = [] { return false; };
  const auto before = contents_of(options.resume);
  REQUIRE(before.contains("moe-s5/checkpoints/step_4.h5"));
  {
    const NoLocks none(ENOLCK);
    CHECK_THROWS_WITH(run_experiment(load_execution(options.resume, {}), options),
                      Contains("HDF5_USE_FILE_LOCKING") && Contains("run.h5"));
  }
  CHECK((contents_of(options.resume) == before));
  CHECK(run_experiment(load_execution(options.resume, {}), options).failed.empty());
}

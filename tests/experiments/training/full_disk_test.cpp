// A disk that takes no more: at any size of a file, and at every single call in turn.
#include "core/file.hpp"
#include "experiments/results/results_file.hpp"
#include "tests/experiments/training/run_place.hpp"
#include "tests/experiments/training/whole_files.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

using namespace moelab;
namespace fs = std::filesystem;

namespace {

// After the fault: what claims to be whole is so, and the execution comes to the end of an undisturbed one,
// or never came into being.
void check_finished_later(const RunPlace& place, const std::string& output) {
  if (!fs::exists(place.root / output)) return;
  check_whole_files(place.root / output);
  if (fs::exists(place.latest(output) / "source_folder.txt")) {
    REQUIRE(place.resume(output) == 0);
    check_same_curves(place.latest("whole"), place.latest(output));
  }
  fs::remove_all(place.root / output);
}

}  // namespace

TEST_CASE("a disk that is full at any write leaves whole files, and the run can be finished", "[full_disk]") {
  const RunPlace place;
  REQUIRE(place.run("whole") == 0);
  std::uintmax_t largest = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place.latest("whole")))
    if (entry.is_regular_file()) largest = std::max(largest, entry.file_size());
  std::size_t number = 0;
  int finished = 0;
  // From no byte on, in steps that grow, beyond the largest file.
  for (std::uint64_t limit = 0; finished == 0; limit += 256 + limit / 6) {
    REQUIRE(limit < 4 * largest);
    INFO("limit of " << limit << " bytes");
    const std::string output = "out" + std::to_string(number++);
    StartOptions options = place.told();
    options.file_size_limit = limit;
    const int code = exit_code_of(start(place.arguments((place.root / output).string()), options));
    if (code == 0) {
      ++finished;
    } else {
      CHECK((code == 1 || code == 3));
    }
    check_finished_later(place, output);
  }
  CHECK(number > 10);
}

TEST_CASE("every call that takes up space on the disk may fail: for good, or once", "[full_disk]") {
  const RunPlace place;
  const auto arguments = [&](const std::string& output) {
    std::vector<std::string> words = place.arguments((place.root / output).string(), "4");
    words.insert(words.end(), {"--jobs=1", "--variant=moe"});
    return words;
  };
  REQUIRE(exit_code_of(start(arguments("whole"))) == 0);
  const fs::path report = place.root / "report";
  for (const bool once : {false, true}) {
    const int error = once ? EIO : ENOSPC;
    bool failed = true;
    int call = 0;
    while (failed) {
      const std::string output = fmt::format("out-{}-{}", once, ++call);
      StartOptions options = place.told();
      options.program = MOELAB_FAILING_DISK;
      options.environment = {
          "FAILING_DISK=" + (place.root / output).string(), fmt::format("FAILING_DISK_CALL={}", call),
          fmt::format("FAILING_DISK_ERROR={}", error), "FAILING_DISK_REPORT=" + report.string()};
      if (once) options.environment.emplace_back("FAILING_DISK_ONCE=1");
      fs::remove(report);
      const int code = exit_code_of(start(arguments(output), options));
      failed = fs::exists(report);
      const std::string what = failed ? read_file(report) : "none";
      INFO("call " << call << (once ? " only: " : " and all after it: ") << what);
      INFO(place.said());
      // Of one failure the run may recover, as it tries again: then nothing is missing.
      if (!failed || (once && code == 0)) {
        CHECK(code == 0);
        check_same_curves(place.latest("whole"), place.latest(output));
      } else {
        CHECK((code == 1 || code == 3));
        CHECK_THAT(place.said(), Contains(std::strerror(error)));
      }
      check_finished_later(place, output);
    }
    CHECK(call > 50);
  }
}

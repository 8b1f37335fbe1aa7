// HDF5 files on full disks, under locks and kills, and beside readers.
#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "core/hdf5.hpp"
#include "tests/core/hdf5_example.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

using namespace moelab;

namespace {

// Runs `body` in a child that may write files of at most `bytes`; returns its exit status, 99 for a signal.
template <class Body>
int exit_status_with_file_limit(rlim_t bytes, const Body& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::exit(body());  // through the library's own exit handler
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

}  // namespace

TEST_CASE("hdf5 a disk that is full at any size leaves the old file and an error", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(3));
  const auto write_larger = [&] {
    try {
      hdf5::write_file(path, test::example_tree(4000));
    } catch (const Error& error) {
      return std::string(error.what()).find("File too large") != std::string::npos ? 1 : 2;
    }
    return 0;
  };
  const rlim_t needed = [&] {
    const auto other = folder.path() / "whole.h5";
    hdf5::write_file(other, test::example_tree(4000));
    return std::filesystem::file_size(other);
  }();
  REQUIRE(needed > 60000);
  for (rlim_t bytes = 0; bytes < needed; bytes += bytes < 4096 ? 512 : needed / 25) {
    INFO("limit of " << bytes << " bytes");
    REQUIRE(exit_status_with_file_limit(bytes, write_larger) == 1);
    REQUIRE(hdf5::Reader(path).shape("runs/dense-s0/loss") == std::vector<std::size_t>{3});
    REQUIRE_FALSE(std::filesystem::exists(path.string() + ".tmp"));
  }
  REQUIRE(exit_status_with_file_limit(needed - 1, write_larger) == 1);
  REQUIRE(exit_status_with_file_limit(needed, write_larger) == 0);
  CHECK(hdf5::Reader(path).shape("runs/dense-s0/loss") == std::vector<std::size_t>{4000});
}

TEST_CASE("hdf5 a file that is not whole is found out without the library", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(3));
  CHECK(hdf5::require_sealed(path) == path);
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t at = 0; at < good.size(); at += at < 64 || at + 64 > good.size() ? 1 : 997) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    std::ofstream(path, std::ios::binary) << bad;
    REQUIRE_THROWS_WITH(hdf5::require_sealed(path), Contains("a.h5 is "));
    REQUIRE_THROWS_AS(hdf5::require_sealed(path), DamagedFile);
    std::ofstream(path, std::ios::binary) << good.substr(0, at);
    REQUIRE_THROWS_WITH(hdf5::require_sealed(path), Contains("a.h5 is cut"));
    REQUIRE_THROWS_AS(hdf5::require_sealed(path), DamagedFile);
  }
}

TEST_CASE("hdf5 a file that cannot be read is not called damaged", "[hdf5]") {
  const TemporaryFolder folder;
  const auto circle = folder.path() / "circle.h5";
  std::filesystem::create_symlink("circle.h5", circle);
  for (const auto& [path, reason] : {std::pair{folder.path(), "is no file"},
                                     {folder.path() / "none.h5", "there is no file"},
                                     {circle, "Too many levels of symbolic links"}}) {
    INFO(reason);
    try {
      hdf5::require_sealed(path);
      FAIL("no error");
    } catch (const DamagedFile& e) {
      FAIL(e.what());
    } catch (const Error& e) {
      CHECK_THAT(e.what(), Contains(path.string()) && Contains(reason));
    }
  }
}

TEST_CASE("hdf5 the checksum of a file is that of its bytes before the seal", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  for (const std::size_t steps : {3, 400'000}) {  // the second is read in parts
    hdf5::write_file(path, test::example_tree(steps));
    const std::string bytes = read_file(path);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size() - 16);
    CHECK(hdf5::checksum_of(path) == fmt::format("{:016x}", crc));
  }
}

TEST_CASE("hdf5 a file that is locked is told of with what helps, and does not stop a writer", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(3));
  const int other = open(path.c_str(), O_RDONLY);  // as another program that writes it
  REQUIRE(flock(other, LOCK_EX | LOCK_NB) == 0);
  REQUIRE_THROWS_WITH(hdf5::Reader(path),
                      Contains("a.h5") && Contains("errno = 11") && Contains("HDF5_USE_FILE_LOCKING=FALSE"));
  hdf5::write_file(path, test::example_tree(4));  // a new file under the old name
  CHECK(hdf5::Reader(path).shape("runs/dense-s0/loss") == std::vector<std::size_t>{4});
  close(other);
}

TEST_CASE("hdf5 a file that is written again and again does not grow", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(100));
  const auto size = std::filesystem::file_size(path);
  for (int i = 0; i < 10; ++i) hdf5::write_file(path, hdf5::Reader(path).group());
  CHECK(std::filesystem::file_size(path) < size + size / 20);
}

// Sanitizers keep what is freed for a while on purpose; their own search for leaks is stricter.
#ifndef MOELAB_SANITIZED

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_CASE("hdf5 writing a file again and again keeps no memory", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  const hdf5::Group tree = test::example_tree(2000);
  for (int i = 0; i < 20; ++i) hdf5::write_file(path, tree);
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 200; ++i) hdf5::write_file(path, tree);
  // A tenth of what the files have together, at least 262,144 bytes each.
  CHECK(resident_bytes() < before + 200 * 262'144 / 10);
}

#endif

ino_t inode(const std::filesystem::path& path) {
  struct stat status {};
  stat(path.c_str(), &status);
  return status.st_ino;
}

TEST_CASE("hdf5 a writer killed at any moment leaves a readable file", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(1));
  std::size_t seen = 1;
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    std::fflush(nullptr);
    const ino_t before = inode(path);
    const pid_t child = fork();
    if (child == 0) {
      for (std::size_t steps = seen;; ++steps) hdf5::write_file(path, test::example_tree(steps));
    }
    while (inode(path) == before) usleep(200);  // so that each child replaces the file at least once
    usleep(static_cast<useconds_t>(kill_number * 1777));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const hdf5::Reader reader(path);
    const auto shape = reader.shape("runs/dense-s0/load");
    CHECK(shape[0] >= seen);
    CHECK(reader.read<float>("runs/dense-s0/load").size() == shape[0] * 6);
    seen = shape[0];
  }
}

// A child that would write for ever.
struct KilledAtTheEnd {
  pid_t child;
  ~KilledAtTheEnd() {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
};

TEST_CASE("hdf5 a file that is replaced again and again can be read at any moment", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, test::example_tree(1));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (std::size_t steps = 2;; ++steps) hdf5::write_file(path, test::example_tree(steps));
  }
  const KilledAtTheEnd killed{child};
  std::size_t seen = 1;
  int failed_dumps = 0, torn = 0, shrunk = 0;
  const std::string dump = "h5dump -H " + path.string() + " > /dev/null 2>&1";
  for (int i = 0; i < 50; ++i) {
    failed_dumps += std::system(dump.c_str()) == 0 ? 0 : 1;
    const hdf5::Reader reader(path);  // throws where it is not whole
    const std::size_t steps = reader.shape("runs/dense-s0/loss")[0];
    torn += reader.read<float>("runs/dense-s0/load").size() == steps * 6 ? 0 : 1;
    shrunk += steps >= seen ? 0 : 1;
    seen = steps;
  }
  CHECK(failed_dumps == 0);
  CHECK(torn == 0);
  CHECK(shrunk == 0);
  CHECK(seen > 1);  // it was replaced meanwhile
}

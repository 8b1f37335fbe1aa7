#include "core/hdf5.hpp"

#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
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

hdf5::Group example(std::size_t steps) {
  hdf5::Group root;
  root.attribute("title", std::string("Größe"));
  root.attribute("count", std::int64_t{7});
  root.attribute("range", std::vector<double>{0.5, 1.5});
  root.attribute("names", std::vector<std::string>{"a", "β"});
  root.text("config", std::string(70000, 'x') + "\nend", "a long text");
  hdf5::Group& train = root.group("runs").group("dense-s0");
  std::vector<std::int64_t> step(steps);
  std::vector<double> loss(steps);
  std::vector<float> load(steps * 6);
  for (std::size_t i = 0; i < steps; ++i) {
    step[i] = static_cast<std::int64_t>(i) * 10 + 1;
    loss[i] = 1.0 / 3.0 + static_cast<double>(i);
  }
  loss[0] = hdf5::kMissing;
  for (std::size_t i = 0; i < load.size(); ++i) load[i] = static_cast<float>(i) * 0.1F;
  train.series("step", "step", step, {"1", "step"});
  train.series("loss", "step", loss, {"nat", "loss"});
  train.array("load", {"step", "layer", "expert"}, {steps, 2, 3}, load, {"token", "load"});
  train.series("name", "layer", std::vector<std::string>{"first", "zwölf"}, {"", "names"});
  train.series("small", "layer", std::vector<std::int16_t>{-1, 300}, {"1", "i2"});
  train.series("large", "layer", std::vector<std::int64_t>{-1, std::int64_t{1} << 53}, {"1", "i8"});
  train.datasets.back().fill = -1;
  train.series("status", "layer", std::vector<std::uint8_t>{0, 1}, {"", "status"});
  const std::vector<std::string> meanings = {"bad", "good"};
  hdf5::set_flags(train.datasets.back(), meanings);
  return root;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("hdf5 round trip of every type, attribute and dimension", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  const hdf5::Group tree = example(2500);
  hdf5::write_file(path, tree);
  CHECK_FALSE(std::filesystem::exists(path.string() + ".tmp"));

  const hdf5::Reader reader(path);
  CHECK(std::get<std::string>(*reader.attribute("", "title")) == "Größe");
  CHECK(std::get<std::int64_t>(*reader.attribute("", "count")) == 7);
  CHECK(std::get<std::vector<double>>(*reader.attribute("", "range")) == std::vector<double>{0.5, 1.5});
  CHECK(std::get<std::vector<std::string>>(*reader.attribute("", "names")) ==
        std::vector<std::string>{"a", "β"});
  CHECK_FALSE(reader.attribute("", "nothing"));
  CHECK(reader.text("config").size() == 70004);
  CHECK(reader.groups("runs") == std::vector<std::string>{"dense-s0"});
  const std::string run = "runs/dense-s0/";
  CHECK(reader.has("runs/dense-s0/loss"));
  CHECK_FALSE(reader.has("runs/dense-s1/loss"));
  CHECK(reader.shape(run + "load") == std::vector<std::size_t>{2500, 2, 3});
  const hdf5::Group& expected = tree.groups[0].groups[0];
  CHECK(same_bits(reader.read<double>(run + "loss"),
                  std::get<std::vector<double>>(expected.find("loss")->values)));
  CHECK(reader.read<float>(run + "load") == std::get<std::vector<float>>(expected.find("load")->values));
  CHECK(reader.read<std::int64_t>(run + "step")[2499] == 24991);
  CHECK(reader.read<std::string>(run + "name")[1] == "zwölf");
  const hdf5::Dataset load = reader.dataset(run + "load");
  CHECK(load.dimensions == std::vector<std::string>{"step", "layer", "expert"});
  CHECK(load.meaning.units == "token");
  CHECK(reader.read<std::int32_t>(run + "expert") == std::vector<std::int32_t>{0, 1, 2});
  CHECK(reader.dataset(run + "large").fill == -1.0);
  const hdf5::Dataset status = reader.dataset(run + "status");
  CHECK(std::get<std::vector<std::uint8_t>>(status.attributes[0].value) == std::vector<std::uint8_t>{0, 1});
  CHECK(std::get<std::string>(status.attributes[1].value) == "bad good");
  std::vector<double> into(2500);
  reader.read_into<double>(run + "loss", into);
  CHECK(same_bits(into, reader.read<double>(run + "loss")));

  SECTION("a tree that is read and written again is the same") {
    const auto again = folder.path() / "b.h5";
    const hdf5::Group first = reader.group();
    hdf5::write_file(again, first);
    const hdf5::Group second = hdf5::Reader(again).group();
    CHECK(second.attributes.size() == 4);
    const hdf5::Group& one = *first.find_group("runs")->find_group("dense-s0");
    const hdf5::Group& two = *second.find_group("runs")->find_group("dense-s0");
    REQUIRE(one.datasets.size() == expected.datasets.size() + 2);  // and the scales of layer and expert
    REQUIRE(two.datasets.size() == one.datasets.size());
    for (const hdf5::Dataset& d : one.datasets) {
      INFO(d.name);
      const hdf5::Dataset* other = two.find(d.name);
      REQUIRE(other);
      CHECK(other->dimensions == d.dimensions);
      CHECK(other->fill == d.fill);
      CHECK(other->attributes.size() == d.attributes.size());
      CHECK(other->meaning.long_name == d.meaning.long_name);
      CHECK(other->values.index() == d.values.index());
      if (d.name != "name") {
        const auto expected_values = reader.read<double>(run + d.name);
        CHECK(same_bits(hdf5::Reader(again).read<double>(run + d.name), expected_values));
      }
    }
  }
}

TEST_CASE("hdf5 objects that cannot be written are named", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::Group root;
  SECTION("shape") {
    root.array("x", {"a", "b"}, {2, 3}, std::vector<float>(5), {"1", "x"});
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("/x of") && Contains("6 values, 5 are given"));
  }
  SECTION("empty") {
    root.series("x", "a", std::vector<float>{}, {"1", "x"});
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("/x of") && Contains("empty"));
  }
  SECTION("one dimension of two lengths") {
    root.series("x", "a", std::vector<float>(2), {"1", "x"});
    root.series("y", "a", std::vector<float>(3), {"1", "y"});
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("dimension a") && Contains("2 and 3"));
  }
  SECTION("a long attribute") {
    root.attribute("config", std::string(60001, 'x'));
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("attribute config") && Contains("60001"));
    root.attributes[0].value = std::vector<double>(8184);
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("attribute config") && Contains("8184"));
  }
  SECTION("a text with a NUL, which would end there") {
    root.text("x", std::string("a\0b", 3), "x");
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("/x of") && Contains("NUL"));
    root.datasets.clear();
    root.attribute("x", std::string("a\0b", 3));
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("attribute x of") && Contains("NUL"));
  }
  SECTION("the same name twice") {
    root.series("x", "a", std::vector<float>(2), {"1", "x"});
    root.group("x");
    REQUIRE_THROWS_WITH(hdf5::write_file(path, root), Contains("two objects of the name 'x'"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("hdf5 errors name the file and the object", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  REQUIRE_THROWS_WITH(hdf5::Reader(path), Contains("there is no file") && Contains("a.h5"));
  std::ofstream(path) << "not a file of that kind";
  REQUIRE_THROWS_WITH(hdf5::Reader(path),
                      Contains("cannot open") && Contains("a.h5") && Contains("signature"));
  hdf5::write_file(path, example(3));
  const hdf5::Reader reader(path);
  REQUIRE_THROWS_WITH(reader.read<double>("runs/x"), Contains("runs/x of") && Contains("a.h5"));
  REQUIRE_THROWS_WITH(reader.read<double>("config"),
                      Contains("config of") && Contains("does not hold numbers"));
  REQUIRE_THROWS_WITH(hdf5::write_file(folder.path() / "no" / "a.h5", example(3)), Contains("No such file"));
}

TEST_CASE("hdf5 an array is read where its shape is the wanted one, and both are told where it is not",
          "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, example(5));
  const hdf5::Reader reader(path);
  const auto load = reader.read_array<float>("runs/dense-s0/load", {5, hdf5::kAnyLength, 3});
  CHECK(load.shape == std::vector<std::size_t>{5, 2, 3});
  CHECK(load.values.size() == 30);
  REQUIRE_THROWS_WITH(
      reader.read_array<float>("runs/dense-s0/load", {5, hdf5::kAnyLength, 4}),
      Contains("runs/dense-s0/load of") && Contains("the shape (5, 2, 3) instead of (5, any, 4)"));
  REQUIRE_THROWS_WITH(reader.read_array<float>("runs/dense-s0/load", {30}),
                      Contains("(5, 2, 3) instead of (30)"));
}

TEST_CASE("hdf5 threads may write and read at once", "[hdf5]") {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto path = folder.path() / (std::to_string(t) + ".h5");
        hdf5::write_file(path, example(50 + static_cast<std::size_t>(i)));
        const hdf5::Reader reader(path);
        good[static_cast<std::size_t>(t)] +=
            reader.read<double>("runs/dense-s0/loss").size() == 50U + static_cast<unsigned>(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == std::vector<int>(4, 10));
}

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

TEST_CASE("hdf5 a disk that is full at any size leaves the old file and an error", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, example(3));
  const auto write_larger = [&] {
    try {
      hdf5::write_file(path, example(4000));
    } catch (const Error& error) {
      return std::string(error.what()).find("File too large") != std::string::npos ? 1 : 2;
    }
    return 0;
  };
  const rlim_t needed = [&] {
    const auto other = folder.path() / "whole.h5";
    hdf5::write_file(other, example(4000));
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
  hdf5::write_file(path, example(3));
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
    hdf5::write_file(path, example(steps));
    const std::string bytes = read_file(path);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size() - 16);
    CHECK(hdf5::checksum_of(path) == fmt::format("{:016x}", crc));
  }
}

TEST_CASE("hdf5 a file that is locked is told of with what helps, and does not stop a writer", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, example(3));
  const int other = open(path.c_str(), O_RDONLY);  // as another program that writes it
  REQUIRE(flock(other, LOCK_EX | LOCK_NB) == 0);
  REQUIRE_THROWS_WITH(hdf5::Reader(path),
                      Contains("a.h5") && Contains("errno = 11") && Contains("HDF5_USE_FILE_LOCKING=FALSE"));
  hdf5::write_file(path, example(4));  // a new file under the old name
  CHECK(hdf5::Reader(path).shape("runs/dense-s0/loss") == std::vector<std::size_t>{4});
  close(other);
}

TEST_CASE("hdf5 a file that is written again and again does not grow", "[hdf5]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.h5";
  hdf5::write_file(path, example(100));
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
  const hdf5::Group tree = example(2000);
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
  hdf5::write_file(path, example(1));
  std::size_t seen = 1;
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    std::fflush(nullptr);
    const ino_t before = inode(path);
    const pid_t child = fork();
    if (child == 0) {
      for (std::size_t steps = seen;; ++steps) hdf5::write_file(path, example(steps));
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
  hdf5::write_file(path, example(1));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    for (std::size_t steps = 2;; ++steps) hdf5::write_file(path, example(steps));
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

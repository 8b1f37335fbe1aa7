#include "core/file.hpp"

#include "core/error.hpp"
#include "core/mapped_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/other_program.hpp"
#include "tests/support/temporary_folder.hpp"

#include <optional>
#include <string>
#include <utility>

using namespace moelab;
namespace fs = std::filesystem;

TEST_CASE("A file is replaced whole, whatever a kill has left beside it", "[file]") {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old");
  folder.write("a.tmp", "half of a new o");
  replace_file(path, std::string("new"));
  CHECK(read_file(path) == "new");
  CHECK_FALSE(fs::exists(path.string() + ".tmp"));

  // What is refused changes nothing.
  CHECK_THROWS_WITH(replace_file(path, std::string("bad"), [](const fs::path&) { throw Error("it is bad"); }),
                    Contains("bad"));
  CHECK(read_file(path) == "new");
  CHECK_FALSE(fs::exists(path.string() + ".tmp"));
  CHECK_THROWS_WITH(replace_file(folder.path() / "none" / "a", std::string("x")), Contains("none/a"));
}

TEST_CASE("A program that is started while a file is locked does not keep the lock", "[file]") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "lock";
  std::optional<FileLock> lock(std::in_place, path, "works here");
  const OtherProgram program;
  CHECK_THROWS_WITH(FileLock(path, "works here"), "another process works here");
  lock.reset();
  CHECK_NOTHROW(FileLock(path, "works here"));
  CHECK(program.lives());
}

TEST_CASE("A mapped file shows the bytes of the file", "[file]") {
  const TemporaryFolder folder;
  const std::string bytes("one\0two\xFF", 8);
  MappedFile file(folder.write("a", bytes));
  CHECK(file.text() == bytes);
  const MappedFile moved = std::move(file);
  CHECK(moved.text() == bytes);
  CHECK(MappedFile(folder.write("empty", "")).text().empty());
  CHECK_THROWS_WITH(MappedFile(folder.path() / "none"), Contains("none") && Contains("No such file"));
  CHECK_THROWS_WITH(MappedFile(folder.path()), Contains("directory"));
}

#include "experiments/data/text_files.hpp"

#include "core/error.hpp"
#include "experiments/data/missing_data.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>

#include <zlib.h>

using namespace moelab;

namespace {

// The paths found, relative to the folder.
std::vector<std::string> found(const TemporaryFolder& folder, const std::string& path) {
  std::vector<std::string> names;
  for (const std::string& file : find_files((folder.path() / path).native())) {
    names.push_back(
        std::filesystem::path(file).lexically_relative(std::filesystem::canonical(folder.path())).native());
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("Files are found by path, folder and glob") {
  const TemporaryFolder folder;
  for (const char* name : {"a.txt", "b.md", "x1/c.txt", "x1/y/d.txt", "x2/e.txt", "x2/.hidden/f.txt",
                           ".g.txt", "with [odd] name/h.txt"}) {
    folder.write(name, "text");
  }
  CHECK(found(folder, "a.txt") == Names{"a.txt"});
  CHECK(found(folder, "x1") == Names{"x1/c.txt", "x1/y/d.txt"});
  CHECK(found(folder, "x1/") == Names{"x1/c.txt", "x1/y/d.txt"});
  CHECK(found(folder, "*.txt") == Names{"a.txt"});
  CHECK(found(folder, "?.[tm]*") == Names{"a.txt", "b.md"});
  CHECK(found(folder, "x*/*.txt") == Names{"x1/c.txt", "x2/e.txt"});
  CHECK(found(folder, "x*") == Names{"x1/c.txt", "x1/y/d.txt", "x2/e.txt"});
  CHECK(found(folder, "**/*.txt") ==
        Names{"a.txt", "with [odd] name/h.txt", "x1/c.txt", "x1/y/d.txt", "x2/e.txt"});
  CHECK(found(folder, "x1/**") == Names{"x1/c.txt", "x1/y/d.txt"});
  CHECK(found(folder, "**/y/*") == Names{"x1/y/d.txt"});
  CHECK(found(folder, "x2/.hidden/*") == Names{"x2/.hidden/f.txt"});
  CHECK(found(folder, ".*.txt") == Names{".g.txt"});
  // A name that exists is that name, even if it looks like a glob.
  CHECK(found(folder, "with [odd] name") == Names{"with [odd] name/h.txt"});
  CHECK(found(folder, "nothing").empty());
  CHECK(found(folder, "nothing/*.txt").empty());
  CHECK(found(folder, "a.txt/*").empty());
  CHECK(find_files("").empty());
}

TEST_CASE("A file found under several names counts once") {
  const TemporaryFolder folder;
  folder.write("v1.2/a.txt", "text");
  std::filesystem::create_directory_symlink("v1.2", folder.path() / "v1");
  CHECK(found(folder, "v*/*.txt") == Names{"v1.2/a.txt"});
}

TEST_CASE("Links to folders do not lead in a circle") {
  const TemporaryFolder folder;
  folder.write("a/b.txt", "text");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "a" / "up");
  CHECK(found(folder, "**/*.txt") == Names{"a/b.txt"});
  CHECK(found(folder, "a") == Names{"a/b.txt"});
}

TEST_CASE("Packed files are read as what is in them") {
  const TemporaryFolder folder;
  const std::string text = std::string(100000, 'x') + "\r\n\xC3\xA9 end";
  const std::string packed = (folder.path() / "a.txt.gz").native();
  gzFile file = gzopen(packed.c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  REQUIRE(gzclose(file) == Z_OK);
  CHECK(read_text_file(packed) == text);
  CHECK(read_text_file(folder.write("plain", text)) == text);
  CHECK(read_text_file(folder.write("empty", "")).empty());

  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 20);
  CHECK_THROWS_WITH(read_text_file(packed), Contains(packed) && Contains("cannot read"));
  CHECK_THROWS_WITH(read_text_file((folder.path() / "none").native()),
                    Contains("none") && Contains("No such file"));
  CHECK_THROWS_AS(read_text_file(folder.path().native()), Error);
}

TEST_CASE("Missing text is told with the package that brings it") {
  const TemporaryFolder folder;
  DataConfig config;
  config.text.domains = {{"here", {folder.write("a.txt", "text")}, 1.0, "some-package"},
                         {"there", {folder.path() / "*.html", folder.path() / "*.txt"}, 1.0, "some-doc"}};
  const std::vector<MissingData> missing = missing_data(config);
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].domain == "there");
  CHECK(missing[0].path == folder.path() / "*.html");
  CHECK_THAT(missing[0].message(), Contains("there") && Contains("*.html") && Contains("package some-doc"));
  config.kind = "synthetic";
  CHECK(missing_data(config).empty());
}

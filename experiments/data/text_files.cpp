#include "experiments/data/text_files.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fnmatch.h>
#include <zlib.h>

namespace moelab {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;

bool is_pattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

bool is_hidden(const fs::path& path) { return path.filename().native().front() == '.'; }

std::vector<fs::directory_entry> visible_entries(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!is_hidden(entry.path())) entries.push_back(entry);
  }
  return entries;
}

// Links to folders are not followed: they may lead round in a circle.
void add_files_below(const fs::path& folder, Names& files) {
  for (const fs::directory_entry& entry : visible_entries(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) {
      add_files_below(entry.path(), files);
    } else if (entry.is_regular_file()) {
      files.push_back(entry.path().native());
    }
  }
}

void add(const fs::path& path, Names& files) {
  if (fs::is_directory(path)) {
    add_files_below(path, files);
  } else if (fs::is_regular_file(path)) {
    files.push_back(path.native());
  }
}

// Adds what the names [next, names.size()) of a glob match below `folder`.
void add_matches(const fs::path& folder, const Names& names, std::size_t next, Names& files) {
  if (next == names.size()) return add(folder, files);
  const std::string& name = names[next];
  if (!is_pattern(name)) {
    if (fs::exists(folder / name)) add_matches(folder / name, names, next + 1, files);
    return;
  }
  if (!fs::is_directory(folder)) return;
  if (name == "**") {
    add_matches(folder, names, next + 1, files);
    for (const fs::directory_entry& entry : visible_entries(folder)) {
      if (entry.is_directory() && !entry.is_symlink()) add_matches(entry.path(), names, next, files);
    }
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const bool matches = fnmatch(name.c_str(), entry.path().filename().c_str(), FNM_PERIOD) == 0;
    if (matches) add_matches(entry.path(), names, next + 1, files);
  }
}

}  // namespace

std::vector<std::string> find_files(const std::string& path) {
  Names files;
  try {
    if (fs::exists(path)) {
      add(path, files);
    } else if (is_pattern(path)) {
      const fs::path glob(path);
      Names names;
      for (const fs::path& name : glob.relative_path()) {
        if (!name.empty()) names.push_back(name.native());
      }
      add_matches(glob.is_absolute() ? glob.root_path() : fs::path("."), names, 0, files);
    }
    // Of a file that is found under several names, by links, one is kept.
    for (std::string& file : files) file = fs::canonical(file).native();
  } catch (const fs::filesystem_error& error) {
    fail("[text] {}: cannot list {}: {}", path, error.path1().native(), error.code().message());
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

std::string read_text_file(const std::string& path) {
  // zlib hands on the bytes of a file that is not packed as they are.
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  require(file != nullptr, "[text] cannot open {}: {}", path, std::strerror(errno));
  std::string text;
  std::array<char, 1 << 16> block;
  int count = 0;
  while ((count = gzread(file.get(), block.data(), block.size())) > 0) text.append(block.data(), count);
  int status = Z_OK;
  const char* message = gzerror(file.get(), &status);
  if (count < 0 || status == Z_BUF_ERROR) {
    fail("[text] cannot read {}: {}", path, status == Z_ERRNO ? std::strerror(errno) : message);
  }
  return text;
}

}  // namespace moelab

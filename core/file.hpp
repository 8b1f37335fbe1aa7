// Files that are either the old or the new one, never half of it.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace moelab {

// Writes the bytes to `<path>.tmp`, syncs, lets `verify` look at that file (it throws when it is not
// content), renames it to `path` and syncs the folder. Error naming the path when anything before the
// renaming fails: the old file is then still there and the temporary is gone. File systems that cannot sync
// folders are let pass: the new file is whole, when its name is safe from a loss of power is then up to them.
void replace_file(const std::filesystem::path& path, std::span<const char> bytes,
                  const std::function<void(const std::filesystem::path& temporary)>& verify = {});

// A file that one process at a time holds. It stays on the disk; the system lets go of it however the process
// ends.
class FileLock {
 public:
  // Makes the file where it is missing. Error "another process <does>" where one holds it. Nothing keeps a
  // second process away on a file system without locks.
  FileLock(const std::filesystem::path& path, const std::string& does);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  int descriptor_;
};

// Whether there is something under this path. Error with the reason where that cannot be told: what is in a
// folder that cannot be looked into, or behind a link that leads in a circle, may be there.
bool file_exists(const std::filesystem::path& path);

// All of a file. Error with the reason when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// The same, for large files: hands on one part after another.
void read_parts(const std::filesystem::path& path, const std::function<void(std::string_view)>& take);

}  // namespace moelab

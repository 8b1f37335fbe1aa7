#include "experiments/data/cache_folder.hpp"

#include "core/file.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include <unistd.h>

namespace moelab {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTemporary = ".tmp-";

// What a process that was killed has left. Nobody works a day at one entry.
void remove_old_temporaries(const fs::path& root) {
  std::error_code ignored;
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const fs::directory_entry& entry : fs::directory_iterator(root, ignored)) {
    const bool is_temporary = entry.path().filename().native().starts_with(kTemporary);
    const auto time = fs::last_write_time(entry.path(), ignored);
    if (is_temporary && !ignored && time < yesterday) fs::remove_all(entry.path(), ignored);
  }
}

fs::path new_folder(const fs::path& root) {
  static std::atomic<int> number{0};
  std::error_code error;
  fs::create_directories(root, error);
  fs::path folder = root / fmt::format("{}{}-{}", kTemporary, getpid(), number++);
  if (!error) {
    fs::remove_all(folder, error);  // of an older process with this number
    fs::create_directory(folder, error);
  }
  if (error) throw CacheError(fmt::format("{} cannot be written: {}", root.string(), error.message()));
  return folder;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

fs::path default_cache_folder() {
  const std::string own = variable("MOELAB_CACHE");
  if (own == "none") return {};
  if (!own.empty()) return fs::absolute(own);
  const fs::path shared = variable("XDG_CACHE_HOME");  // one that is not absolute is to be ignored
  if (shared.is_absolute()) return shared / "moelab";
  const fs::path home = variable("HOME");
  return home.is_absolute() ? home / ".cache" / "moelab" : fs::path();
}

bool CacheFolder::has(const std::string& key) const {
  std::error_code ignored;
  return is_used() && fs::is_directory(path_of(key), ignored);
}

void CacheFolder::add(const std::string& key, const std::function<void(const fs::path&)>& fill) const {
  const fs::path temporary = new_folder(root_);
  std::error_code error;
  try {
    fill(temporary);
    remove_old_temporaries(root_);
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  fs::rename(temporary, path_of(key), error);
  if (!error) return;
  const std::string reason = error.message();
  fs::remove_all(temporary, error);
  if (!has(key)) throw CacheError(fmt::format("{} cannot be written: {}", path_of(key).string(), reason));
}

void CacheFolder::write(const fs::path& file, const std::string& content) {
  try {
    replace_file(file, content);
  } catch (const Error& e) {
    throw CacheError(e.what());
  }
}

void CacheFolder::remove(const std::string& key) const {
  // Out of the way at once; then file by file.
  std::error_code error;
  const fs::path aside = new_folder(root_) / "removed";
  fs::rename(path_of(key), aside, error);
  fs::remove_all(aside.parent_path(), error);
}

}  // namespace moelab

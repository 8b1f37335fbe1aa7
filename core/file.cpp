#include "core/file.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace moelab {

namespace {

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : path_(path.string()), value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    require(value_ >= 0, "[file] cannot open {}: {}", path_, std::strerror(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  void write(std::span<const char> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(value_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      require(n >= 0, "[file] cannot write {}: {}", path_, std::strerror(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void sync() const {
    const int code = ::fsync(value_);  // before errno is read for the message
    require(code == 0, "[file] cannot sync {}: {}", path_, std::strerror(errno));
  }
  // Some file systems have no such call for folders.
  void sync_folder() const {
    const bool done = ::fsync(value_) == 0 || errno == EINVAL || errno == ENOTSUP;
    require(done, "[file] cannot sync {}: {}", path_, std::strerror(errno));
  }
  void close() {
    const int code = ::close(std::exchange(value_, -1));
    require(code == 0, "[file] cannot close {}: {}", path_, std::strerror(errno));
  }
  void read(const std::function<void(std::string_view)>& take) const {
    std::string buffer(1 << 18, '\0');
    for (;;) {
      const ssize_t n = ::read(value_, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      require(n >= 0, "[file] cannot read {}: {}", path_, std::strerror(errno));
      if (n == 0) return;
      take(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
    }
  }

 private:
  std::string path_;
  int value_;
};

}  // namespace

void replace_file(const std::filesystem::path& path, std::span<const char> bytes,
                  const std::function<void(const std::filesystem::path&)>& verify) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);  // left by a kill
  try {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL);
    file.write(bytes);
    file.sync();
    file.close();
    if (verify) verify(temporary);
    std::filesystem::rename(temporary, path);
  } catch (const std::filesystem::filesystem_error& error) {
    std::filesystem::remove(temporary, ignored);
    fail("[file] cannot replace {}: {}", path.string(), error.code().message());
  } catch (...) {
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  Descriptor(path.has_parent_path() ? path.parent_path() : ".", O_RDONLY | O_DIRECTORY).sync_folder();
}

FileLock::FileLock(const std::filesystem::path& path, const std::string& does)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  require(descriptor_ >= 0, "[file] cannot open {}: {}", path.string(), std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  fail("another process {}", does);
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool file_exists(const std::filesystem::path& path) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  require(!error, "[file] cannot open {}: {}", path.string(), error.message());
  return is_there;
}

std::string read_file(const std::filesystem::path& path) {
  std::string text;
  read_parts(path, [&text](std::string_view part) { text += part; });
  return text;
}

void read_parts(const std::filesystem::path& path, const std::function<void(std::string_view)>& take) {
  Descriptor(path, O_RDONLY).read(take);
}

}  // namespace moelab

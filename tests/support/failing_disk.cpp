// Linked with the program: its calls that take up space on a disk fail on demand, those of its libraries too.
// Set by the environment:
//   FAILING_DISK         the folder whose files and folders this is about
//   FAILING_DISK_CALL    the number of the first call that fails, from 1
//   FAILING_DISK_ERROR   the errno that it fails with
//   FAILING_DISK_ONCE    set: the calls after it work again
//   FAILING_DISK_REPORT  a file outside of the folder that is made with the name of the first failed call
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

std::atomic<long> calls{0};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Demand {
  std::string folder = variable("FAILING_DISK");
  long first = std::atol(variable("FAILING_DISK_CALL").c_str());
  int error = std::atoi(variable("FAILING_DISK_ERROR").c_str());
  bool once = !variable("FAILING_DISK_ONCE").empty();
  std::string report = variable("FAILING_DISK_REPORT");
};

const Demand& demand() {
  static const Demand value;
  return value;
}

void report(std::string_view call, std::string_view path) {
  const std::string text = std::string(call) + ' ' + std::string(path) + '\n';
  const int file = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, demand().report.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666));
  syscall(SYS_write, file, text.data(), text.size());
  syscall(SYS_close, file);
}

// Whether this call fails; errno is set then.
bool fails(std::string_view call, std::string_view path) {
  if (demand().folder.empty() || path.substr(0, demand().folder.size()) != demand().folder) return false;
  const long number = ++calls;
  if (number < demand().first || (demand().once && number > demand().first)) return false;
  if (number == demand().first) report(call, path);
  errno = demand().error;
  return true;
}

bool fails(std::string_view call, int descriptor) {
  const int before = errno;
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const long size = syscall(SYS_readlink, link.c_str(), path.data(), path.size());
  errno = before;
  return size > 0 && fails(call, std::string_view(path.data(), static_cast<std::size_t>(size)));
}

// A file that is there, and is not emptied, takes up no space when it is opened.
bool takes_space(const char* path, int flags) {
  return (flags & O_TRUNC) != 0 || ((flags & O_CREAT) != 0 && syscall(SYS_access, path, F_OK) != 0);
}

int open_file(const char* path, int flags, mode_t mode) {
  if (takes_space(path, flags) && fails("open", std::string_view(path))) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t size) {
  return fails("write", descriptor) ? -1 : syscall(SYS_write, descriptor, bytes, size);
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  return fails("writev", descriptor) ? -1 : syscall(SYS_writev, descriptor, parts, count);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  return fails("pwrite", descriptor) ? -1 : syscall(SYS_pwrite64, descriptor, bytes, size, offset);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  return pwrite(descriptor, bytes, size, offset);
}

int ftruncate(int descriptor, off_t size) noexcept {
  return fails("ftruncate", descriptor) ? -1 : static_cast<int>(syscall(SYS_ftruncate, descriptor, size));
}

int fsync(int descriptor) {
  return fails("fsync", descriptor) ? -1 : static_cast<int>(syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  return fails("fdatasync", descriptor) ? -1 : static_cast<int>(syscall(SYS_fdatasync, descriptor));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return fails("mkdir", std::string_view(path)) ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int rename(const char* from, const char* to) noexcept {
  return fails("rename", std::string_view(to)) ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}

int symlink(const char* target, const char* path) noexcept {
  return fails("symlink", std::string_view(path)) ? -1 : static_cast<int>(syscall(SYS_symlink, target, path));
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_file(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_file(path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  static const auto real = next(&std::fopen, "fopen");
  const bool writes = std::string_view(mode).find_first_of("wa+") != std::string_view::npos;
  return writes && fails("fopen", std::string_view(path)) ? nullptr : real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

size_t fwrite(const void* bytes, size_t size, size_t count, FILE* stream) {
  static const auto real = next(&std::fwrite, "fwrite");
  return fails("fwrite", fileno(stream)) ? 0 : real(bytes, size, count, stream);
}

}  // extern "C"

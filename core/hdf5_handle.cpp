#include "core/hdf5_handle.hpp"

#include <cstring>
#include <string_view>

namespace moelab::hdf5 {

namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

thread_local int locks_held = 0;

herr_t keep_innermost(unsigned depth, const H5E_error2_t* error, void* data) {
  if (depth == 0 && error->desc) *static_cast<std::string*>(data) = error->desc;
  return 0;
}

}  // namespace

LibraryLock::LibraryLock() : lock_(library_mutex()) {
  ++locks_held;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

LibraryLock::~LibraryLock() { --locks_held; }

bool LibraryLock::held() { return locks_held > 0; }

std::string library_error() {
  std::string cause;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &cause);
  H5Eclear2(H5E_DEFAULT);
  if (cause.empty()) return "the HDF5 library gives no reason";
  const bool about_lock = cause.find("lock") != std::string::npos && cause.find("errno") != std::string::npos;
  // System errors come as "..., errno = 28, error message = 'No space left on device', buf = 0x...".
  constexpr std::string_view kMark = "error message = '";
  const std::size_t mark = cause.find(kMark);
  if (mark != std::string::npos) {
    const std::size_t begin = mark + kMark.size();
    const std::size_t errno_at = cause.find("errno = ");
    std::string number = cause.substr(errno_at, cause.find(',', errno_at) - errno_at);
    const std::string first = cause.substr(0, cause.find(':'));
    cause = first.substr(0, first.find(',')) + ": " + cause.substr(begin, cause.find('\'', begin) - begin) +
            " (" + number + ")";
  }
  if (about_lock)
    cause +=
        "; another program has the file open, or the file system cannot lock files: then set the environment "
        "variable HDF5_USE_FILE_LOCKING=FALSE";
  return cause;
}

Handle string_type(H5T_cset_t character_set) {
  const std::string object = "a string type";
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "make", object);
  check(H5Tset_size(type.get(), H5T_VARIABLE), "make", object);
  check(H5Tset_cset(type.get(), character_set), "make", object);
  return type;
}

namespace {

void add_to(std::uint64_t& sum, const void* bytes, std::size_t size) {
  const char* p = static_cast<const char*>(bytes);
  const auto mix = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
    sum ^= sum >> 32;
  };
  for (; size >= 8; size -= 8, p += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  std::uint64_t tail = 0;
  if (size > 0) std::memcpy(&tail, p, size);
  mix(tail ^ (static_cast<std::uint64_t>(size) << 56));
}

}  // namespace

std::uint64_t checksum_of_values(const Values& values) {
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
  std::visit(
      [&](const auto& v) {
        using T = std::remove_cvref_t<decltype(v[0])>;
        if constexpr (std::is_same_v<T, std::string>) {
          for (const std::string& s : v) add_to(sum, s.data(), s.size());
        } else {
          add_to(sum, v.data(), v.size() * sizeof(T));
        }
      },
      values);
  return sum;
}

}  // namespace moelab::hdf5

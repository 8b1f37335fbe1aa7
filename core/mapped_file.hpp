// A file as memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace moelab {

// Reads a file through its pages: they are read when they are looked at, and the system takes them back when
// memory is short. So a file may be larger than memory. The file must not shrink meanwhile.
class MappedFile {
 public:
  MappedFile() = default;
  // Error when the file cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const char> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;  // null for an empty file
  std::size_t size_ = 0;
};

}  // namespace moelab

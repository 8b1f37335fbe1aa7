// Token ids in a file, as NumPy reads it too, or in memory.
#pragma once

#include "core/mapped_file.hpp"
#include "experiments/data/cache_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

namespace moelab {

// Ids of 16 bits that do not change any more.
class TokenArray {
 public:
  TokenArray() = default;
  explicit TokenArray(std::vector<std::uint16_t> ids);
  // An .npy file of the type '<u2' with one dimension. Error if it is not one. Its pages are read when
  // needed.
  explicit TokenArray(const std::filesystem::path& npy);

  std::span<const std::uint16_t> ids() const { return ids_; }
  // CRC-32 of the ids as little-endian bytes.
  std::uint32_t checksum() const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::uint16_t> ids_;
};

// Writes such a file piece by piece, for a cache. CacheError where it cannot be written.
class TokenFileWriter {
 public:
  explicit TokenFileWriter(const std::filesystem::path& npy);
  void append(std::span<const std::int32_t> ids);
  // Writes the head again, which holds the number of ids. CacheError, too, if anything was not written.
  void finish();

 private:
  void write(std::span<const char> bytes);
  std::filesystem::path path_;
  std::ofstream file_;
  std::int64_t num_ids_ = 0;
  std::vector<std::uint16_t> buffer_;
};

}  // namespace moelab

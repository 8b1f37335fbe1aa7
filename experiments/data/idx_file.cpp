#include "experiments/data/idx_file.hpp"

#include "core/error.hpp"
#include "experiments/data/text_files.hpp"

#include <algorithm>
#include <filesystem>

namespace moelab {

namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;

std::uint8_t byte_at(const std::string& bytes, std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); }

std::int64_t size_at(const std::string& bytes, std::size_t i) {
  std::int64_t size = 0;
  for (std::size_t b = 0; b < 4; ++b) size = size * 256 + byte_at(bytes, i + b);
  return size;
}

// Whether an array of that shape has so many values. Sizes come from outside: their product may be beyond any
// integer.
bool is_size_of(const std::vector<std::int64_t>& shape, std::size_t count) {
  if (std::ranges::find(shape, 0) != shape.end()) return count == 0;
  std::size_t product = 1;
  for (const std::int64_t size : shape) {
    if (static_cast<std::size_t>(size) > count / product) return false;
    product *= static_cast<std::size_t>(size);
  }
  return product == count;
}

}  // namespace

std::string find_idx_file(const std::string& path) {
  for (const std::string& candidate : {path, path + ".gz"}) {
    if (std::filesystem::is_regular_file(candidate)) return candidate;
  }
  return {};
}

IdxFile read_idx_file(const std::string& path) {
  const std::string file = find_idx_file(path);
  require(!file.empty(), "[images] there is no file {} or {}.gz", path, path);
  const std::string bytes = read_text_file(file);
  const bool is_idx = bytes.size() >= 4 && byte_at(bytes, 0) == 0 && byte_at(bytes, 1) == 0;
  require(is_idx && byte_at(bytes, 2) == kUnsignedByte, "[images] {} is not an idx file of bytes", file);
  const std::size_t dimensions = byte_at(bytes, 3);
  const std::size_t header = 4 + 4 * dimensions;
  require(dimensions >= 1 && bytes.size() >= header, "[images] {} ends within its header", file);
  IdxFile result;
  for (std::size_t d = 0; d < dimensions; ++d) result.shape.push_back(size_at(bytes, 4 + 4 * d));
  require(is_size_of(result.shape, bytes.size() - header),
          "[images] {} has {} values where its header says {}", file, bytes.size() - header,
          fmt::join(result.shape, " x "));
  result.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return result;
}

}  // namespace moelab

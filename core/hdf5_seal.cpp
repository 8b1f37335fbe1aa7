#include "core/hdf5_seal.hpp"

#include "core/error.hpp"
#include "core/hdf5.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <vector>

#include <zlib.h>

namespace moelab::hdf5 {

namespace {

constexpr std::string_view kMark = "moelab-1";

// The mark, then the checksum, little-endian.
Seal seal_with(uLong crc) {
  Seal seal{};
  std::ranges::copy(kMark, seal.begin());
  for (std::size_t i = 0; i < 8; ++i)
    seal[kMark.size() + i] = static_cast<char>(static_cast<std::uint64_t>(crc) >> (8 * i));
  return seal;
}

uLong add_to(uLong crc, std::span<const char> bytes) {
  return crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

}  // namespace

Seal seal_of(std::span<const char> bytes) { return seal_with(add_to(crc32_z(0, nullptr, 0), bytes)); }

const std::filesystem::path& require_sealed(const std::filesystem::path& path) {
  require(std::filesystem::exists(path), "[hdf5] there is no file {}", path.string());
  require(std::filesystem::is_regular_file(path), "[hdf5] {} is no file", path.string());
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "[hdf5] cannot open {}", path.string());
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  const std::string missing = fmt::format(
      "[hdf5] {} is cut, or no file of moelab: it does not end with the mark of a whole one", path.string());
  Seal seal{};
  require(size > seal.size(), "{}", missing);
  std::vector<char> buffer(std::size_t{1} << 20);
  uLong crc = crc32_z(0, nullptr, 0);
  for (std::size_t left = size - seal.size(); left > 0;) {
    const std::size_t part = std::min(left, buffer.size());
    require(static_cast<bool>(in.read(buffer.data(), static_cast<std::streamsize>(part))),
            "[hdf5] cannot read {}", path.string());
    crc = add_to(crc, std::span(buffer).first(part));
    left -= part;
  }
  require(static_cast<bool>(in.read(seal.data(), seal.size())), "[hdf5] cannot read {}", path.string());
  require(std::string_view(seal.data(), kMark.size()) == kMark, "{}", missing);
  require(seal == seal_with(crc), "[hdf5] {} is damaged: its checksum is wrong", path.string());
  return path;
}

}  // namespace moelab::hdf5

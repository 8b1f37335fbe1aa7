#include "core/hdf5_seal.hpp"

#include "core/crc32.hpp"
#include "core/damaged_file.hpp"
#include "core/file.hpp"
#include "core/hdf5.hpp"

#include <algorithm>
#include <string_view>

namespace moelab::hdf5 {

namespace {

constexpr std::string_view kMark = "moelab-1";

// The mark, then the checksum, little-endian.
Seal seal_with(std::uint32_t crc) {
  Seal seal{};
  std::ranges::copy(kMark, seal.begin());
  for (std::size_t i = 0; i < 8; ++i)
    seal[kMark.size() + i] = static_cast<char>(static_cast<std::uint64_t>(crc) >> (8 * i));
  return seal;
}

// That of a file which is whole.
Seal read_seal(const std::filesystem::path& path) {
  require(file_exists(path), "[hdf5] there is no file {}", path.string());
  require(std::filesystem::is_regular_file(path), "[hdf5] {} is no file", path.string());
  std::uint32_t crc = 0;
  std::string end;  // the last bytes so far, which may be the seal
  read_parts(path, [&](std::string_view part) {
    end += part;
    if (end.size() <= Seal().size()) return;
    const std::size_t before = end.size() - Seal().size();
    crc = crc32_of(std::as_bytes(std::span(end).first(before)), crc);
    end.erase(0, before);
  });
  require_whole(end.size() == Seal().size() && end.starts_with(kMark),
                "[hdf5] {} is cut, or no file of moelab: it does not end with the mark of a whole one",
                path.string());
  Seal seal{};
  std::ranges::copy(end, seal.begin());
  require_whole(seal == seal_with(crc), "[hdf5] {} is damaged: its checksum is wrong", path.string());
  return seal;
}

}  // namespace

Seal seal_of(std::span<const char> bytes) { return seal_with(crc32_of(std::as_bytes(bytes))); }

const std::filesystem::path& require_sealed(const std::filesystem::path& path) {
  read_seal(path);
  return path;
}

std::string checksum_of(const std::filesystem::path& path) {
  const Seal seal = read_seal(path);
  std::string text;
  for (std::size_t i = seal.size(); i > kMark.size(); --i)
    text += fmt::format("{:02x}", static_cast<unsigned char>(seal[i - 1]));
  return text;
}

}  // namespace moelab::hdf5

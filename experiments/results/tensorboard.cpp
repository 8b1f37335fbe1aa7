#include "experiments/results/tensorboard.hpp"

#include <array>
#include <bit>

namespace moelab::tensorboard {

namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0x82f63b78U ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(std::rotr(crc, 15) + 0xa282ead8U);
}

std::string record(const std::string& data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + masked_crc(length) + data + masked_crc(data);
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

enum class Wire : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
std::string key(unsigned field, Wire wire) { return varint(field << 3 | static_cast<unsigned>(wire)); }
std::string bytes_field(unsigned field, std::string_view bytes) {
  return key(field, Wire::bytes) + varint(bytes.size()) + std::string(bytes);
}

// Event: 1 wall_time (double), 2 step (int64), 3 file_version (string), 5 summary (message).
std::string event(double wall_time, const std::string& rest) {
  return key(1, Wire::fixed64) + little_endian(std::bit_cast<std::uint64_t>(wall_time)) + rest;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> table = crc_table();
  std::uint32_t c = ~0U;
  for (const char b : bytes) c = table[(c ^ static_cast<unsigned char>(b)) & 0xff] ^ (c >> 8);
  return ~c;
}

std::string file_version_record(double wall_time) {
  return record(event(wall_time, bytes_field(3, "brain.Event:2")));
}

std::string scalar_record(double wall_time, std::int64_t step, std::string_view tag, float value) {
  // Summary: repeated 1 value; Value: 1 tag (string), 2 simple_value (float).
  const std::string entry =
      bytes_field(1, tag) + key(2, Wire::fixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
  const std::string summary = bytes_field(1, entry);
  return record(event(
      wall_time, key(2, Wire::varint) + varint(static_cast<std::uint64_t>(step)) + bytes_field(5, summary)));
}

}  // namespace moelab::tensorboard

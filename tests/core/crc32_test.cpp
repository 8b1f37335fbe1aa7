#include "core/crc32.hpp"

#include "tests/support/catch.hpp"

#include <string_view>

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

// The check value of the catalogue of CRC algorithms (CRC-32/ISO-HDLC); the others by Python's zlib.crc32.
TEST_CASE("crc32 gives the published sums", "[crc32]") {
  using moelab::crc32_of;
  CHECK(crc32_of(bytes("123456789")) == 0xcbf43926U);
  CHECK(crc32_of(bytes("The quick brown fox jumps over the lazy dog")) == 0x414fa339U);
  CHECK(crc32_of({}) == 0);
}

TEST_CASE("crc32 goes on from the sum of the bytes before", "[crc32]") {
  using moelab::crc32_of;
  const std::uint32_t first = crc32_of(bytes("12345"));
  CHECK(crc32_of(bytes("6789"), first) == 0xcbf43926U);
  CHECK(crc32_of({}, first) == first);
}

// CRC-32 as zip, gzip and PNG have it (ISO 3309), to tell bytes that have changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace moelab {

// Of the bytes that `before` is the sum of, with these behind them; 0 is the sum of none.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace moelab

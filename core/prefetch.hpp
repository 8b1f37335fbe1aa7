// Asks for memory ahead of its use. Rows that are gathered lie anywhere, and products write their results in
// an order that the processor does not foresee: without this each line is waited for.
#pragma once

#include <cstddef>

namespace moelab {

// What the processor moves at a time. A hint for a line more or less does no harm, so its place is not asked.
inline constexpr std::size_t kCacheLine = 64;

// Bytes that are read soon.
inline void prefetch(const void* first, std::size_t bytes) {
  const auto* line = static_cast<const std::byte*>(first);
  for (std::size_t b = 0; b < bytes; b += kCacheLine) __builtin_prefetch(line + b, 0, 2);
}

// Bytes that are written soon.
inline void prefetch_to_write(void* first, std::size_t bytes) {
  auto* line = static_cast<std::byte*>(first);
  for (std::size_t b = 0; b < bytes; b += kCacheLine) __builtin_prefetch(line + b, 1, 2);
}

}  // namespace moelab

// Whole numbers of JSON that may come from elsewhere.
#pragma once

#include "core/error.hpp"

#include <concepts>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

namespace moelab {

// Error where it is no whole number that T holds. (The library's get() takes fractions and cuts large
// numbers, and of 1e30 it has no defined result.)
template <std::integral T, class Json>
T whole_number(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.template get<std::uint64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  } else if (json.is_number_integer()) {
    const auto value = json.template get<std::int64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  }
  fail("{} is no whole number of {} bits", json.is_number() ? json.dump() : json.type_name(), 8 * sizeof(T));
}

}  // namespace moelab

#include "core/field_range.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace moelab {

std::string plain_number(double value) {
  const bool is_whole = std::nearbyint(value) == value && std::abs(value) < 1e15;
  return is_whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

std::string range_of(const FieldInfo& info) {
  std::string low = fmt::format("{} {}", info.min_exclusive ? "above" : "at least", plain_number(info.min));
  std::string high = fmt::format("{} {}", info.max_exclusive ? "below" : "at most", plain_number(info.max));
  if (std::isinf(info.min)) return high;
  return std::isinf(info.max) ? low : low + " and " + high;
}

bool in_range(double value, const FieldInfo& info) {
  return (info.min_exclusive ? value > info.min : value >= info.min) &&
         (info.max_exclusive ? value < info.max : value <= info.max);
}

std::string float32_error(double value, const FieldInfo& info) {
  using Limits = std::numeric_limits<float>;
  const double size = std::abs(value);
  if (size > static_cast<double>(Limits::max())) {
    return fmt::format("the largest number of float32 is {}", Limits::max());
  }
  if (size != 0 && size < static_cast<double>(Limits::min())) {
    return fmt::format("float32 takes it for 0; the least above 0 that it holds is {}", Limits::min());
  }
  const auto rounded = static_cast<double>(static_cast<float>(value));
  if ((info.max_exclusive && rounded >= info.max) || (info.min_exclusive && rounded <= info.min)) {
    return fmt::format("float32 rounds it to {}; it must be {}", plain_number(rounded), range_of(info));
  }
  return {};
}

}  // namespace moelab

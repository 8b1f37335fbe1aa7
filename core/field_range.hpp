// The numbers that a field may have.
#pragma once

#include "core/fields.hpp"

#include <string>

namespace moelab {

// A whole number without a point.
std::string plain_number(double value);
// As in "at least 1 and below 2".
std::string range_of(const FieldInfo& info);
bool in_range(double value, const FieldInfo& info);
// Why float32, which the computation uses, cannot hold a number that is in its range; empty where it can.
std::string float32_error(double value, const FieldInfo& info);

}  // namespace moelab

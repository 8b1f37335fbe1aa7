// Writes a config struct as YAML with every default spelled out. Reading the result gives the same struct.
#pragma once

#include "core/fields.hpp"
#include "core/yaml.hpp"

namespace moelab {

yaml::Node write_value(const ValueRef& value);

// An absent optional is written as null. The struct is not changed.
template <class T>
yaml::Node write_fields(T& value) {
  return write_value(ValueRef::to(value));
}

}  // namespace moelab

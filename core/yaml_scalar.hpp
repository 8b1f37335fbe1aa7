// Numbers and truth values as a user writes them.
#pragma once

#include "core/yaml.hpp"

#include <cstdint>
#include <string>
#include <variant>

namespace moelab::yaml {

// Why a text is not what it should be, and what to write instead (may be empty).
struct ScalarError {
  std::string message;
  std::string help;
};

template <class T>
using Parsed = std::variant<T, ScalarError>;

// 3000000, 3_000_000, 3e6, 1.5e6. Not: 010, 0x10, 1.5, 2.0, "3" in quotes, values past 64 bits.
Parsed<std::int64_t> read_integer(const Node& node);
// Also 0.1, 1e-4, .5, 1_000.5. Always finite; not: 010, nan, 1e999, yes, "3" in quotes.
Parsed<double> read_number(const Node& node);
// true and false only.
Parsed<bool> read_boolean(const Node& node);

}  // namespace moelab::yaml

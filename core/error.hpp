// Errors are exceptions with values in the message; no library call prints or exits.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace moelab {

// Something that was asked for cannot be done. The command line turns it into a message and exit status 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The configuration or the command line is wrong. Exit status 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// A value that must be finite is not: names the step, layer and tensor. Exit status 3.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Checks an argument at a boundary: throws Error with the formatted message when the condition does not hold.
// The message starts with where, in brackets: require(k <= E, "[top_k] top_k={} exceeds num_experts={}", k,
// E).
template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace moelab

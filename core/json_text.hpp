// JSON as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace moelab {

// Bytes that are not UTF-8 (of file names, of texts in files of others), for which the library would throw,
// become U+FFFD. `indent`: blanks a level; negative: all on one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace moelab

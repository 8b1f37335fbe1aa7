// UTF-8, read character by character.
#pragma once

#include <string_view>

namespace moelab::utf8 {

struct Character {
  char32_t number = 0;     // of Unicode
  std::size_t length = 0;  // in bytes; 0: the text does not start with a valid character
};

// Of a text that is not empty.
Character first_character(std::string_view text);

}  // namespace moelab::utf8

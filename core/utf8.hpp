// UTF-8, read character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace moelab::utf8 {

struct Character {
  char32_t number = 0;     // of Unicode
  std::size_t length = 0;  // in bytes; 0: the text does not start with a valid character
};

// Of a text that is not empty.
Character first_character(std::string_view text);

// Whether a byte goes on with the character of the byte before it.
inline bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace moelab::utf8

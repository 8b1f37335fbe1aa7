// Words: the pieces of a text that byte pairs are counted and merged within.
#pragma once

#include <cstddef>
#include <string_view>

namespace moelab {

// Length in bytes of the word that a text begins with, which is one of
//
//   letters (a-z, A-Z, every byte from 0x80), digits, or other signs, with one space before them;
//   blanks: all up to the next word, without the space that belongs to it;
//   a zero byte.
//
// What a word is depends on nothing before it. None is longer than kLongestWord bytes: a longer run is cut,
// not within a UTF-8 character. 0 for an empty text. (As GPT-2 does it, Radford et al. 2019, on bytes instead
// of Unicode classes.)
std::size_t word_length(std::string_view text);

inline constexpr std::size_t kLongestWord = 64;

}  // namespace moelab

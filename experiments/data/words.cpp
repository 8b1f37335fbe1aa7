#include "experiments/data/words.hpp"

#include "core/utf8.hpp"

namespace moelab {
namespace {

enum class Class { blank, letter, digit, sign, zero };

Class class_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Class::letter;
  if (c >= '0' && c <= '9') return Class::digit;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return Class::blank;
  return byte == 0 ? Class::zero : Class::sign;
}

std::size_t end_of_run(std::string_view text, std::size_t begin) {
  const Class kind = class_of(text[begin]);
  std::size_t end = begin + 1;
  if (kind == Class::zero) return end;
  while (end < text.size() && end < kLongestWord && class_of(text[end]) == kind) ++end;
  // A run that is cut ends with a whole character, which has 4 bytes at most.
  if (end == kLongestWord && end < text.size()) {
    std::size_t start = end;
    while (start + 3 > end && utf8::continues_character(text[start])) --start;
    if (!utf8::continues_character(text[start])) end = start;
  }
  return end;
}

}  // namespace

std::size_t word_length(std::string_view text) {
  if (text.empty()) return 0;
  if (class_of(text[0]) != Class::blank) return end_of_run(text, 0);
  const bool leads = text[0] == ' ' && text.size() > 1 && class_of(text[1]) != Class::blank &&
                     class_of(text[1]) != Class::zero;
  if (leads) return end_of_run(text, 1);
  const std::size_t end = end_of_run(text, 0);
  const bool has_next_word = end < text.size() && end < kLongestWord && class_of(text[end]) != Class::zero;
  return has_next_word && end > 1 && text[end - 1] == ' ' ? end - 1 : end;
}

}  // namespace moelab

#include "experiments/plot/labels.hpp"

#include "core/utf8.hpp"
#include "experiments/plot/drawing.hpp"

#include <map>

namespace moelab::plot {

namespace {

constexpr const char* kEllipsis = "…";

// The characters of UTF-8 text.
std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> characters;
  for (const char c : text) {
    if (characters.empty() || !utf8::continues_character(c)) characters.emplace_back();
    characters.back() += c;
  }
  return characters;
}

// `head`: the share of the room that the beginning gets.
std::string cut(const std::string& text, double width, double size, double head) {
  if (text_width(text, size) <= width) return text;
  const std::vector<std::string> characters = characters_of(text);
  const double room = width - text_width(kEllipsis, size);
  std::string begin, end;
  std::size_t first = 0, last = characters.size();
  while (first < last && text_width(begin + characters[first], size) <= head * room)
    begin += characters[first++];
  while (last > first && text_width(begin + characters[last - 1] + end, size) <= room)
    end = characters[--last] + end;
  return begin + kEllipsis + end;
}

// The texts, each cut with the same share; false where two that differ have become the same.
bool cut_all(const std::vector<std::string>& texts, double width, double size, double head,
             std::vector<std::string>& result) {
  result.clear();
  std::map<std::string, std::string> whole_of;
  bool all_differ = true;
  for (const std::string& text : texts) {
    result.push_back(cut(text, width, size, head));
    all_differ = whole_of.try_emplace(result.back(), text).first->second == text && all_differ;
  }
  return all_differ;
}

}  // namespace

std::vector<std::string> shortened(const std::vector<std::string>& texts, double width, double size) {
  std::vector<std::string> result;
  for (const double head : {0.5, 0.3, 0.7, 0.15, 0.85, 0.0, 1.0})
    if (cut_all(texts, width, size, head, result)) return result;
  std::map<std::string, std::size_t> number_of;
  for (const std::string& text : texts) number_of.try_emplace(text, number_of.size() + 1);
  result.clear();
  for (const std::string& text : texts) {
    const std::string number = std::to_string(number_of[text]) + ": ";
    result.push_back(number + cut(text, width - text_width(number, size), size, 0.5));
  }
  return result;
}

}  // namespace moelab::plot

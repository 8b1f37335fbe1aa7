#include "core/visible.hpp"

#include "core/utf8.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace moelab {

namespace {

bool changes_direction(char32_t c) { return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069); }

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || changes_direction(c); }

std::string escape_of(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  const auto number = static_cast<std::uint32_t>(c);
  return number < 0x100 ? fmt::format("\\x{:02x}", number) : fmt::format("\\u{:04x}", number);
}

// Calls seen(part of the text) for each character that is shown or allowed, acts(number) for each other.
template <class Seen, class Acts>
void each_character(std::string_view text, std::string_view allowed, const Seen& seen, const Acts& acts) {
  while (!text.empty()) {
    const utf8::Character c = utf8::first_character(text);
    const std::size_t length = std::max<std::size_t>(c.length, 1);
    if (c.length == 0) {
      acts(static_cast<unsigned char>(text[0]));
    } else if (is_control(c.number) && allowed.find(text[0]) == std::string_view::npos) {
      acts(c.number);
    } else {
      seen(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
}

std::string visible(std::string_view text, std::string_view allowed) {
  if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) return std::string(text);
  std::string out;
  out.reserve(text.size());
  each_character(
      text, allowed, [&](std::string_view part) { out += part; }, [&](char32_t c) { out += escape_of(c); });
  return out;
}

}  // namespace

bool has_control_character(std::string_view text, std::string_view allowed) {
  bool found = false;
  each_character(
      text, allowed, [](std::string_view) {}, [&](char32_t) { found = true; });
  return found;
}

std::string visible_line(std::string_view text) { return visible(text, ""); }

std::string visible_text(std::string_view text) { return visible(text, "\n\t"); }

}  // namespace moelab

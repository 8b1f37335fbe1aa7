#include "core/visible.hpp"

#include "core/utf8.hpp"
#include "tests/support/catch.hpp"

using namespace moelab;

TEST_CASE("visible: characters that act are written out") {
  CHECK(visible_line("a\x1b]0;owned\x07z") == "a\\x1b]0;owned\\x07z");
  CHECK(visible_line("one\ntwo\tthree\r") == "one\\ntwo\\tthree\\x0d");
  CHECK(visible_line(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(visible_line("\xc2\x9b"
                     "2J") == "\\x9b2J");  // CSI in one character
  CHECK(visible_line("\x9b"
                     "2J \xff") == "\\x9b2J \\xff");  // bytes that are not UTF-8
  CHECK(visible_line("\xe2\x80\xae"
                     "abc\xe2\x81\xa9") == "\\u202eabc\\u2069");
}

TEST_CASE("visible: all else stays, and of a text its lines") {
  const std::string names = "größe mit 漢字 ± \xf0\x9f\x90\x88 \xc2\xa0 שלום";
  CHECK(visible_line(names) == names);
  CHECK_FALSE(has_control_character(names));
  CHECK(visible_text("one\n\ttwo\x1b[2J\n") == "one\n\ttwo\\x1b[2J\n");
  CHECK(visible_line("").empty());
}

TEST_CASE("visible: control characters are found") {
  for (const char* text : {"a\nb", "a\x1b", "\x7f", "\xc2\x80", "\xe2\x80\xaa", "\xc3"}) {
    INFO(visible_line(text));
    CHECK(has_control_character(text));
  }
  CHECK_FALSE(has_control_character("a\nb\tc", "\n\t"));
  CHECK(has_control_character("a\nb\x1b", "\n\t"));
}

TEST_CASE("visible: UTF-8 is read as Unicode says") {
  const auto is = [](std::string_view text, char32_t number, std::size_t length) {
    const utf8::Character c = utf8::first_character(text);
    return c.number == number && c.length == length;
  };
  CHECK(is("az", U'a', 1));
  CHECK(is("ö", U'ö', 2));
  CHECK(is("漢", U'漢', 3));
  CHECK(is("\xf0\x9f\x90\x88", U'\U0001F408', 4));
  // Cut off, alone, overlong, a surrogate, beyond the last.
  for (const char* text :
       {"\xe6\xbc", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    CHECK(is(text, 0, 0));
}

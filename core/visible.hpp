// Text of others as it may be shown on a terminal or in a table: nothing in it acts, all of it is seen.
#pragma once

#include <string>
#include <string_view>

namespace moelab {

// Whether there is a character that acts where it is shown instead of being seen: a control character (C0,
// DEL, C1) that is none of `allowed`, one that changes the direction of what follows, or a byte that is not
// part of UTF-8.
bool has_control_character(std::string_view text, std::string_view allowed = {});

// Such characters are written as \x1b, \n, \t or \u202e; the rest stays as it is.
std::string visible_line(std::string_view text);
// The same of a text of several lines: ends of lines and tabs stay.
std::string visible_text(std::string_view text);

}  // namespace moelab

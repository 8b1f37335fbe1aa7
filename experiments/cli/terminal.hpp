// Text for people: colours where they can be seen, tables.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace moelab::cli {

// True on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
bool has_colour(std::FILE* stream);

// Rendered diagnostics with the words `error`, `warning` and `help` coloured, if `colour`.
std::string paint_diagnostics(const std::string& text, bool colour);

// Columns two spaces apart; numbers to the right, text to the left. The first row is the heading.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// 1234567 as 1.23 M; below a thousand as it is.
std::string short_number(double value);
// Bytes as 1.2 GB.
std::string short_bytes(double bytes);
// Seconds as 45 s, 3 min 20 s, 2 h 5 min.
std::string short_time(double seconds);

}  // namespace moelab::cli

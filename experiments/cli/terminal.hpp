// Text for people: colours where they can be seen, sizes and times. Names of others that are in it never act
// on the terminal (core/visible.hpp).
#pragma once

#include <cstdio>
#include <string>

namespace moelab::cli {

// True on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
bool has_colour(std::FILE* stream);

// Rendered diagnostics with the words `error`, `warning` and `help` coloured, if `colour`.
std::string paint_diagnostics(const std::string& text, bool colour);

// Writes diagnostics or notes to stderr, coloured where that can be seen. Where it cannot be written (a
// reader that went away, a full disk) nothing can be said; the exit status still tells.
void tell(const std::string& text);

// What a command was asked for, on standard output.
void print(const std::string& text);

// An argument as a shell takes it: in quotes where it has characters that mean something there.
std::string shell_word(const std::string& argument);

// Bytes as 1.20GB.
std::string short_bytes(double bytes);
// Seconds as 45 s, 3 min 20 s, 2 h 5 min.
std::string short_time(double seconds);

}  // namespace moelab::cli

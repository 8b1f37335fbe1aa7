// Pieces of an HTML page. Everything that goes into text is escaped here.
#pragma once

#include "experiments/compare/text_table.hpp"

#include <string>

namespace moelab::report {

std::string escaped(const std::string& text);
// First column left, others right; scrolls sideways where it is wider than the screen.
std::string table(const TextTable& cells);
std::string section(const std::string& id, const std::string& title, const std::string& content);
// A part that is folded away at first.
std::string folded(const std::string& title, const std::string& content);
std::string preformatted(const std::string& text);
// The whole page with its style. `body` is HTML.
std::string page(const std::string& title, const std::string& body);

}  // namespace moelab::report

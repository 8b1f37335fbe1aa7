// A table of cells as text, in the notations in which people want it. Cells may hold names of others: nothing
// in them acts on a terminal, in a document or in a spreadsheet.
#pragma once

#include <string>
#include <vector>

namespace moelab {

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
  std::size_t num_keys = 1;                    // first columns, that say what a row is of
};

inline constexpr std::size_t kAnyWidth = std::string::npos;

// Cells of a column have equal width, numbers to the right: for a terminal. Where that has fewer `columns`
// than the table, the table comes in parts one below the other, each with the keys of the rows.
std::string to_terminal(const TextTable& raw, std::size_t columns = kAnyWidth);
std::string to_markdown(const TextTable& table);
// RFC 4180: quoted where needed. Text that a spreadsheet would take for a formula (it begins with = + - @ and
// is no number) gets a ' before it.
std::string to_csv(const TextTable& table);
// A tabular environment with booktabs rules.
std::string to_latex(const TextTable& table);

// One line of text as it stands in these documents, outside of tables too.
std::string markdown_escaped(const std::string& text);
std::string latex_escaped(const std::string& text);

// Three digits, as in "1.23M" of 1234567; a whole number below 1000 as it is; "-" of NaN.
std::string with_si_prefix(double value);
// Fixed digits; "-" of NaN.
std::string with_digits(double value, int digits);
// The shortest text that gives the same bits back; empty of NaN.
std::string exact(double value);

}  // namespace moelab

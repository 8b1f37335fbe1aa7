// A table of cells as text, in the notations in which people want it.
#pragma once

#include <string>
#include <vector>

namespace moelab {

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
};

// Columns of equal width, numbers to the right: for a terminal.
std::string to_terminal(const TextTable& table);
std::string to_markdown(const TextTable& table);
// RFC 4180: quoted where needed.
std::string to_csv(const TextTable& table);
// A tabular environment with booktabs rules.
std::string to_latex(const TextTable& table);

// 1234567 as "1.23M"; "-" of NaN.
std::string with_si_prefix(double value);
// Fixed digits; "-" of NaN.
std::string with_digits(double value, int digits);
// The shortest text that gives the same bits back; empty of NaN.
std::string exact(double value);

}  // namespace moelab

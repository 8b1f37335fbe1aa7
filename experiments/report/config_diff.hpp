// What the configurations of two runs differ in, line by line.
#pragma once

#include <string>
#include <vector>

namespace moelab::report {

struct DiffLine {
  char mark;  // ' ' in both, '-' only in the first, '+' only in the second
  std::string text;
};
// The shortest such list (longest common subsequence), without lines that are in both, except the `context`
// lines around each difference.
std::vector<DiffLine> line_diff(const std::string& first, const std::string& second, std::size_t context = 1);

}  // namespace moelab::report

#include "experiments/report/config_diff.hpp"

#include <algorithm>

namespace moelab::report {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

std::vector<DiffLine> line_diff(const std::string& first, const std::string& second, std::size_t context) {
  const std::vector<std::string> a = lines_of(first), b = lines_of(second);
  // length(i, j): of the longest common subsequence of a[i..] and b[j..]
  std::vector<std::vector<std::size_t>> length(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      length[i][j] = a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
  std::vector<DiffLine> all;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      all.push_back({' ', a[i++]});
      ++j;
    } else if (i < a.size() && (j == b.size() || length[i + 1][j] >= length[i][j + 1])) {
      all.push_back({'-', a[i++]});
    } else {
      all.push_back({'+', b[j++]});
    }
  }
  std::vector<DiffLine> shown;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::size_t from = k > context ? k - context : 0, to = std::min(all.size(), k + context + 1);
    const bool near = std::any_of(all.begin() + static_cast<std::ptrdiff_t>(from),
                                  all.begin() + static_cast<std::ptrdiff_t>(to),
                                  [](const DiffLine& line) { return line.mark != ' '; });
    if (near) shown.push_back(all[k]);
  }
  return shown;
}

}  // namespace moelab::report

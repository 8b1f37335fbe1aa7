#include "experiments/results/short_names.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moelab {

namespace {

using Parts = std::vector<std::string>;

// Whether both names end with the same `count` parts.
bool end_alike(const Parts& a, const Parts& b, std::size_t count) {
  const auto n = static_cast<std::ptrdiff_t>(count);
  return a.size() >= count && b.size() >= count && std::equal(a.end() - n, a.end(), b.end() - n);
}

}  // namespace

std::vector<std::string> shortest_names(std::span<const Parts> names, std::string_view separator) {
  std::vector<std::string> result;
  for (const Parts& name : names) {
    std::size_t count = 1;
    const auto clashes = [&](const Parts& other) { return other != name && end_alike(name, other, count); };
    while (count < name.size() && std::ranges::any_of(names, clashes)) ++count;
    const auto first = name.end() - static_cast<std::ptrdiff_t>(std::min(count, name.size()));
    result.push_back(fmt::format("{}", fmt::join(first, name.end(), separator)));
  }
  return result;
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

}  // namespace moelab

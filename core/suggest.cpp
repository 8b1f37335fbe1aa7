#include "core/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace moelab {

namespace {

char folded(char c) {
  if (c == '-') return '_';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// What other programs call these, too far from them to look like a slip of the hand.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"bf16", "bfloat16"},
                                                                         {"fp32", "float32"},
                                                                         {"f32", "float32"},
                                                                         {"float", "float32"},
                                                                         {"single", "float32"}};

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  for (const auto& [other, ours] : kOtherNames) {
    const auto known_one = std::find(known.begin(), known.end(), ours);
    if (edit_distance(name, other) == 0 && known_one != known.end()) return *known_one;
  }
  const std::size_t bound = std::max<std::size_t>(1, (name.size() + 1) / 3);
  std::size_t best = bound + 1;
  std::string out;
  for (const std::string& candidate : known) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    if (longer - std::min(name.size(), candidate.size()) >= best) continue;  // no distance is less than that
    const std::size_t distance = edit_distance(name, candidate);
    // A distance as long as the candidate shares no letter with it.
    if (distance < best && distance < candidate.size()) {
      best = distance;
      out = candidate;
    }
  }
  return out;
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 50;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  if (names.size() > kShown) out += fmt::format(" or one of {} more", names.size() - kShown);
  return out;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known,
                         std::string_view otherwise) {
  const std::string near = nearest(name, known);
  return near.empty() ? std::string(otherwise) : fmt::format("did you mean `{}`?", near);
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  return did_you_mean(name, known, "known: " + list_of(known));
}

}  // namespace moelab

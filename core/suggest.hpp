// Near names, for messages about unknown ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string
// alignment); letter case and the difference of `-` and `_` count nothing.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name that `name` most likely means: at most a third of its letters away, or called so elsewhere
// (bf16 for bfloat16). Empty if there is none.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// "a, b or c", for messages that list what is allowed. Of more than 50, the first 50.
std::string list_of(const std::vector<std::string>& names);

// Help for a name that is none of `known`: "did you mean `a`?", or `otherwise` where none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known,
                         std::string_view otherwise);
// The same; where none is near, "known: a, b or c".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace moelab

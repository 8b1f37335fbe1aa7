// Names of many parts, cut to as many of the last ones as tell each from the others.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// For each name, given in parts, the fewest of its last parts that no other name ends with, joined by
// `separator`: a.b.width and a.c.width give b.width and c.width. Different names give different results, and
// equal ones equal results.
std::vector<std::string> shortest_names(std::span<const std::vector<std::string>> names,
                                        std::string_view separator);

// The parts between the separators.
std::vector<std::string> parts_of(std::string_view text, char separator);

}  // namespace moelab

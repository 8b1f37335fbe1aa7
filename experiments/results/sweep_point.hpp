// A point of a sweep: what was set there, and which points of two variants belong together.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

// Dotted keys and their values as text, in the order of the file.
using SweepSettings = std::vector<std::pair<std::string, std::string>>;

// From the JSON object of RunSummary::sweep_point; a text that is none counts as one setting without a key.
SweepSettings sweep_settings(const std::string& json);

// Which of the points of the baseline a run at the point `mine` is compared with. Settings that both have
// must be equal, and a setting that only the run has does not matter, so that a sweep of the mixture alone is
// compared with the baseline as it is. The point all of whose settings the run has comes first, of several
// the one with most; then one of which it has some. Nothing where no point shares a setting, or where several
// are equally near: it would not be known what a difference comes from.
std::optional<std::size_t> same_point(const SweepSettings& mine, std::span<const SweepSettings> baseline);

}  // namespace moelab

// Labels that fit where they are to stand.
#pragma once

#include <string>
#include <vector>

namespace moelab::plot {

// Each text as it is where it is no wider than `width` points (text_width), else with "…" for as much of its
// inside as has no room. Texts that differ stay different: where the ends alone do not tell them apart, more
// is kept of one end, and where no cut does, they are numbered.
std::vector<std::string> shortened(const std::vector<std::string>& texts, double width, double size);

}  // namespace moelab::plot

// The one door to cairo, for PDF and PNG. A program built without it throws Error here.
#pragma once

#include "experiments/plot/drawing.hpp"

#include <string>

namespace moelab::plot {

std::string to_pdf(const Drawing& drawing);
std::string to_png(const Drawing& drawing);  // 200 dots an inch

}  // namespace moelab::plot

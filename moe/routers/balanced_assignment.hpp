// Which of E experts each of n rows goes to, so that the experts' sizes differ by at most one and the sum of
// the scores is as large as possible (the linear assignment of BASE layers).
#pragma once

#include "core/tensor.hpp"

#include <cstdint>
#include <vector>

namespace moelab::moe {

// Exact, by successive shortest augmenting paths over the experts (the transportation problem; Ahuja,
// Magnanti and Orlin 1993, section 9.7): about n (E^2 + n) operations. scores: (n, E) finite.
std::vector<std::int32_t> balanced_assignment(In scores);

}  // namespace moelab::moe

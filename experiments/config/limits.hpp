// Limits of an experiment.
#pragma once

#include <cstddef>

namespace moelab {

inline constexpr std::size_t kMaxRuns = 10'000;
inline constexpr std::size_t kLongestName = 100;  // bytes; names of runs and of experiments are folders

}  // namespace moelab

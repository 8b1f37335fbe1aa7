// Inside of core/hdf5: the end of a file that tells whether it is whole.
#pragma once

#include <array>
#include <span>

namespace moelab::hdf5 {

using Seal = std::array<char, 16>;
Seal seal_of(std::span<const char> bytes);

}  // namespace moelab::hdf5

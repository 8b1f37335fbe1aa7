// A tree of every type, attribute and dimension, for tests of HDF5 files.
#pragma once

#include "core/hdf5.hpp"

namespace moelab::test {

// Series of `steps` entries, at least one.
hdf5::Group example_tree(std::size_t steps);

}  // namespace moelab::test

// Inside of core/hdf5: the values of a dataset that is open. Include only from core/hdf5_*.cpp.
#pragma once

#include "core/hdf5.hpp"
#include "core/hdf5_parts.hpp"

#include <string>
#include <vector>

namespace moelab::hdf5 {

// `where` stands in errors, which are DamagedFile where the file holds something else than is asked for.
Extent dataset_extent(hid_t dataset, const std::string& where);
void require_number(hid_t dataset, const std::string& where);
// Converted to T. No memory is taken for values that the file cannot hold.
template <class T>
std::vector<T> dataset_values(hid_t dataset, const std::string& where);
// In the type that they have in the file.
Values dataset_as_stored(hid_t dataset, const std::string& where);

}  // namespace moelab::hdf5

// Inside of core/hdf5: objects of a file by their path. Include only from core/hdf5_*.cpp.
#pragma once

#include "core/hdf5_handle.hpp"

#include <string>
#include <vector>

namespace moelab::hdf5 {

// 1: it is there; 0: it is not; less: the library cannot tell.
htri_t look_for(hid_t file, const std::string& object);

// DamagedFile where there is none. `where` stands in errors.
Handle open_group(hid_t file, const std::string& group, const std::string& where);
Handle open_dataset(hid_t file, const std::string& dataset, const std::string& where);

// The names of the children of that type, in the order they were created.
std::vector<std::string> children(hid_t group, const std::string& where, H5O_type_t wanted);

}  // namespace moelab::hdf5

#include "core/hdf5_open.hpp"

#include "core/damaged_file.hpp"

#include <array>

namespace moelab::hdf5 {

// Every step of the path is asked for; the library reports a missing parent as an error.
htri_t look_for(hid_t file, const std::string& object) {
  if (object.empty()) return 1;
  for (std::size_t end = object.find('/');; end = object.find('/', end + 1)) {
    const std::string part = object.substr(0, end);
    const htri_t found = part.empty() ? 1 : H5Lexists(file, part.c_str(), H5P_DEFAULT);
    if (found <= 0 || end == std::string::npos) return found;
  }
}

Handle open_group(hid_t file, const std::string& group, const std::string& where) {
  require_whole(look_for(file, group) != 0, "[hdf5] cannot open {}: there is no such group", where);
  return Handle(H5Gopen2(file, group.empty() ? "/" : group.c_str(), H5P_DEFAULT), H5Gclose, "open", where);
}

Handle open_dataset(hid_t file, const std::string& dataset, const std::string& where) {
  require_whole(look_for(file, dataset) != 0, "[hdf5] cannot open {}: there is no such dataset", where);
  return Handle(H5Dopen2(file, dataset.c_str(), H5P_DEFAULT), H5Dclose, "open", where);
}

std::vector<std::string> children(hid_t group, const std::string& where, H5O_type_t wanted) {
  H5G_info_t info;
  check(H5Gget_info(group, &info), "list", where);
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    std::array<char, 512> name{};
    H5_index_t order = H5_INDEX_CRT_ORDER;
    if (H5Lget_name_by_idx(group, ".", order, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT) < 0) {
      order = H5_INDEX_NAME;
      check(H5Lget_name_by_idx(group, ".", order, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT),
            "list", where);
    }
    H5O_info_t object;
    check(H5Oget_info_by_idx(group, ".", order, H5_ITER_INC, i, &object, H5P_DEFAULT), "list", where);
    if (object.type == wanted) names.emplace_back(name.data());
  }
  return names;
}

}  // namespace moelab::hdf5

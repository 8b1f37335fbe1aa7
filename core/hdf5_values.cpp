#include "core/hdf5_values.hpp"

#include "core/damaged_file.hpp"

#include <algorithm>

namespace moelab::hdf5 {

namespace {

// Before memory is taken: a damaged or hostile file can claim any shape, and any storage. What is stored, and
// is not more than the file, bounds what may be there, since deflate shrinks to a 1032nd at best.
void require_stored(hid_t dataset, hid_t type, const Extent& extent, const std::string& where) {
  const std::size_t element = std::max<std::size_t>(1, H5Tget_size(type));
  hsize_t file_size = 0;
  const Handle file(H5Iget_file_id(dataset), H5Fclose, "find the file of", where);
  check(H5Fget_filesize(file.get(), &file_size), "find the size of the file of", where);
  const std::size_t most =
      1100 * static_cast<std::size_t>(std::min(H5Dget_storage_size(dataset), file_size)) + 4096;
  require_whole(extent.count <= most / element,
                "[hdf5] {} claims {} values, more than what is stored can hold", where, extent.count);
}

std::vector<std::string> dataset_strings(hid_t dataset, const std::string& where) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "read", where);
  require_whole(H5Tget_class(type.get()) == H5T_STRING, "[hdf5] {} is not text", where);
  const Handle space(H5Dget_space(dataset), H5Sclose, "read", where);
  const Extent extent = extent_of(space.get(), where);
  require_stored(dataset, type.get(), extent, where);
  return read_strings(type.get(), space.get(), extent.count, where, [&](hid_t t, void* buffer) {
    return H5Dread(dataset, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
  });
}

}  // namespace

Extent dataset_extent(hid_t dataset, const std::string& where) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "read the shape of", where);
  return extent_of(space.get(), where);
}

void require_number(hid_t dataset, const std::string& where) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "read", where);
  const H5T_class_t type_class = H5Tget_class(type.get());
  require_whole(type_class == H5T_FLOAT || type_class == H5T_INTEGER, "[hdf5] {} does not hold numbers",
                where);
}

template <class T>
std::vector<T> dataset_values(hid_t dataset, const std::string& where) {
  if constexpr (std::is_same_v<T, std::string>) {
    return dataset_strings(dataset, where);
  } else {
    require_number(dataset, where);
    const Extent extent = dataset_extent(dataset, where);
    require_stored(dataset, Handle(H5Dget_type(dataset), H5Tclose, "read", where).get(), extent, where);
    std::vector<T> values(extent.count);
    check(H5Dread(dataset, TypeOf<T>::memory(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read", where);
    return values;
  }
}
template std::vector<float> dataset_values(hid_t, const std::string&);
template std::vector<double> dataset_values(hid_t, const std::string&);
template std::vector<std::int16_t> dataset_values(hid_t, const std::string&);
template std::vector<std::int32_t> dataset_values(hid_t, const std::string&);
template std::vector<std::int64_t> dataset_values(hid_t, const std::string&);
template std::vector<std::uint8_t> dataset_values(hid_t, const std::string&);
template std::vector<std::string> dataset_values(hid_t, const std::string&);

Values dataset_as_stored(hid_t dataset, const std::string& where) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "read", where);
  const H5T_class_t type_class = H5Tget_class(type.get());
  const std::size_t bytes = H5Tget_size(type.get());
  if (type_class == H5T_STRING) return dataset_values<std::string>(dataset, where);
  if (type_class == H5T_FLOAT && bytes == 4) return dataset_values<float>(dataset, where);
  if (type_class == H5T_FLOAT) return dataset_values<double>(dataset, where);
  if (bytes == 1) return dataset_values<std::uint8_t>(dataset, where);
  if (bytes == 2) return dataset_values<std::int16_t>(dataset, where);
  if (bytes == 4) return dataset_values<std::int32_t>(dataset, where);
  return dataset_values<std::int64_t>(dataset, where);
}

}  // namespace moelab::hdf5

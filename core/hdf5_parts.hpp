// Inside of core/hdf5: what datasets and attributes have in common, and attributes. Include only from
// core/hdf5_*.cpp.
#pragma once

#include "core/hdf5.hpp"
#include "core/hdf5_handle.hpp"

#include <optional>
#include <string>
#include <vector>

namespace moelab::hdf5 {

struct Extent {
  std::vector<std::size_t> shape;
  std::size_t count = 1;
};

Extent extent_of(hid_t space, const std::string& where);

// Strings of a dataset or attribute through the reading function `read(type, buffer)`.
template <class Read>
std::vector<std::string> read_strings(hid_t file_type, hid_t space, std::size_t count,
                                      const std::string& where, const Read& read) {
  std::vector<std::string> strings(count);
  if (check(H5Tis_variable_str(file_type), "read", where) > 0) {
    const Handle type = string_type(H5Tget_cset(file_type));
    std::vector<char*> pointers(count, nullptr);
    check(read(type.get(), pointers.data()), "read", where);
    for (std::size_t i = 0; i < count; ++i)
      if (pointers[i]) strings[i] = pointers[i];
    check(H5Dvlen_reclaim(type.get(), space, H5P_DEFAULT, pointers.data()), "read", where);
    return strings;
  }
  const std::size_t width = H5Tget_size(file_type);
  std::string buffer(width * count, '\0');
  check(read(file_type, buffer.data()), "read", where);
  for (std::size_t i = 0; i < count; ++i) {
    strings[i] = buffer.substr(i * width, width);
    const std::size_t end = strings[i].find('\0');
    if (end != std::string::npos) strings[i].resize(end);
  }
  return strings;
}

// Nothing where there is no such attribute.
std::optional<AttributeValue> attribute_of(hid_t object, const std::string& name, const std::string& where);
// All but those that the library and write_file keep for themselves.
std::vector<Attribute> read_attributes(hid_t object, const std::string& where);

}  // namespace moelab::hdf5

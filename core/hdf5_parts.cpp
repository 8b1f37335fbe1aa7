#include "core/hdf5_parts.hpp"

#include "core/error.hpp"

#include <array>

namespace moelab::hdf5 {

namespace {

constexpr std::size_t kMostValues = std::size_t{1} << 48;
constexpr std::size_t kMostInAttribute = 1 << 16;  // the library writes no larger ones

AttributeValue read_attribute(hid_t attribute, const std::string& where) {
  const Handle type(H5Aget_type(attribute), H5Tclose, "read", where);
  const Handle space(H5Aget_space(attribute), H5Sclose, "read", where);
  const Extent extent = extent_of(space.get(), where);
  const H5T_class_t type_class = H5Tget_class(type.get());
  require(extent.count > 0 && extent.count <= kMostInAttribute && H5Tget_size(type.get()) <= kMostInAttribute,
          "[hdf5] {} claims {} values", where, extent.count);
  if (type_class == H5T_STRING) {
    std::vector<std::string> strings =
        read_strings(type.get(), space.get(), extent.count, where,
                     [&](hid_t t, void* buffer) { return H5Aread(attribute, t, buffer); });
    if (extent.shape.empty()) return strings[0];
    return strings;
  }
  const auto numbers = [&]<class T>(T) {
    std::vector<T> values(extent.count);
    check(H5Aread(attribute, TypeOf<T>::memory(), values.data()), "read", where);
    return values;
  };
  require(type_class == H5T_FLOAT || type_class == H5T_INTEGER, "[hdf5] {} is neither a number nor text",
          where);
  if (extent.shape.empty()) {
    if (type_class == H5T_FLOAT) return numbers(double{})[0];
    return numbers(std::int64_t{})[0];
  }
  if (type_class == H5T_FLOAT) return numbers(double{});
  if (H5Tget_size(type.get()) == 1) return numbers(std::uint8_t{});
  return numbers(std::int64_t{});
}

// What the library and write_file keep in attributes; it comes back in other fields or is made again.
bool is_internal(const std::string& name) {
  return name == "CLASS" || name == "NAME" || name == "REFERENCE_LIST" || name == "DIMENSION_LIST" ||
         name == "_Netcdf4Dimid" || name == "_FillValue" || name == "units" || name == "long_name";
}

}  // namespace

Extent extent_of(hid_t space, const std::string& where) {
  Extent extent;
  std::array<hsize_t, H5S_MAX_RANK> sizes{};
  const int rank = check(H5Sget_simple_extent_dims(space, sizes.data(), nullptr), "read the shape of", where);
  for (int axis = 0; axis < rank; ++axis) {
    extent.shape.push_back(sizes[axis]);
    require(sizes[axis] == 0 || extent.count <= kMostValues / sizes[axis],
            "[hdf5] {} claims more than 2^48 values", where);
    extent.count *= sizes[axis];
  }
  return extent;
}

std::vector<Attribute> read_attributes(hid_t object, const std::string& where) {
  H5O_info_t info;
  check(H5Oget_info(object, &info), "read", where);
  std::vector<Attribute> attributes;
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    // Files of others may not track the order of creation.
    hid_t id = H5Aopen_by_idx(object, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0) id = H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
    const Handle attribute(id, H5Aclose, "read an attribute of", where);
    std::array<char, 256> name{};
    check(H5Aget_name(attribute.get(), name.size(), name.data()), "read an attribute of", where);
    if (!is_internal(name.data()))
      attributes.push_back(
          {name.data(), read_attribute(attribute.get(), std::string(name.data()) + " of " + where)});
  }
  return attributes;
}

std::optional<AttributeValue> attribute_of(hid_t object, const std::string& name, const std::string& where) {
  if (check(H5Aexists(object, name.c_str()), "look for an attribute of", where) == 0) return std::nullopt;
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "open", name + " of " + where);
  return read_attribute(attribute.get(), name + " of " + where);
}

}  // namespace moelab::hdf5

#include "core/hdf5_tree.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace moelab::hdf5 {

namespace {

constexpr std::size_t kAttributeLimit = 60000;    // the library refuses about 64 KB
constexpr std::size_t kChunkElements = 1024;      // of a 1-D dataset
constexpr std::size_t kChunkRows = 64;            // of others, along their first axis
constexpr std::size_t kChunkBytes = 1 << 20;      // fewer rows where they are long, but at least 16
constexpr std::size_t kMaxChunkBytes = 64 << 20;  // longer rows are stored without chunks
constexpr std::size_t kContiguousBytes = 512;     // smaller is not worth a chunk index

std::string child_path(const std::string& path, const std::string& name) { return path + "/" + name; }

// For the library, to which a NUL is the end of a text.
std::vector<const char*> pointers_to(std::span<const std::string> strings, const std::string& where) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& s : strings) {
    require(s.find('\0') == std::string::npos, "[hdf5] {} holds text with the character NUL", where);
    pointers.push_back(s.c_str());
  }
  return pointers;
}

bool is_scale(const Dataset& d) { return d.dimensions.size() == 1 && d.dimensions[0] == d.name; }

template <class T>
void write_simple_attribute(hid_t object, const std::string& name, const std::string& where, hid_t space,
                            const T* values) {
  Handle attribute(H5Acreate2(object, name.c_str(), TypeOf<T>::file(), space, H5P_DEFAULT, H5P_DEFAULT),
                   H5Aclose, "create", where);
  check(H5Awrite(attribute.get(), TypeOf<T>::memory(), values), "write", where);
  attribute.close(where);
}

void write_string_attribute(hid_t object, const std::string& name, const std::string& where, hid_t space,
                            const std::vector<const char*>& values) {
  const Handle type = string_type();
  Handle attribute(H5Acreate2(object, name.c_str(), type.get(), space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                   "create", where);
  check(H5Awrite(attribute.get(), type.get(), values.data()), "write", where);
  attribute.close(where);
}

}  // namespace

void TreeWriter::write_attribute(hid_t object, const std::string& path, const std::string& name,
                                 const AttributeValue& value) const {
  const std::string where = "attribute " + name + " of " + at(file_, path);
  const auto simple_space = [&](std::size_t n) {
    require(n > 0, "[hdf5] {} has no values", where);
    const hsize_t size = n;
    return Handle(H5Screate_simple(1, &size, nullptr), H5Sclose, "create", where);
  };
  const auto scalar_space = [&] { return Handle(H5Screate(H5S_SCALAR), H5Sclose, "create", where); };
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          require(v.size() <= kAttributeLimit, "[hdf5] {} has {} bytes, more than {}: write it as a dataset",
                  where, v.size(), kAttributeLimit);
          write_string_attribute(object, name, where, scalar_space().get(), pointers_to({&v, 1}, where));
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          require(v.size() * 16 <= kAttributeLimit, "[hdf5] {} has {} strings: write it as a dataset", where,
                  v.size());
          write_string_attribute(object, name, where, simple_space(v.size()).get(), pointers_to(v, where));
        } else if constexpr (std::is_arithmetic_v<T>) {
          write_simple_attribute(object, name, where, scalar_space().get(), &v);
        } else {
          require(v.size() * sizeof(v[0]) <= kAttributeLimit,
                  "[hdf5] {} has {} values, more than {} bytes: write it as a dataset", where, v.size(),
                  kAttributeLimit);
          write_simple_attribute(object, name, where, simple_space(v.size()).get(), v.data());
        }
      },
      value);
}

void TreeWriter::check_names(const std::string& path, const Group& tree) const {
  std::set<std::string> seen;
  const auto check_name = [&](const std::string& name) {
    require(!name.empty() && name != "." && name.find('/') == std::string::npos &&
                name.find('\0') == std::string::npos,
            "[hdf5] '{}' is no name for an object in {}", name, at(file_, path));
    require(seen.insert(name).second, "[hdf5] {} holds two objects of the name '{}'", at(file_, path), name);
  };
  for (const Dataset& d : tree.datasets) check_name(d.name);
  for (const Group& child : tree.groups) check_name(child.name);
  for (const Group::Deferred& d : tree.deferred) check_name(d.name);
  for (const Dataset& d : tree.datasets) {
    const std::string where = at(file_, child_path(path, d.name));
    require(!options_.scales || d.shape.size() == d.dimensions.size(),
            "[hdf5] {} has {} axes and {} dimension names", where, d.shape.size(), d.dimensions.size());
    std::size_t count = 1;
    for (const std::size_t n : d.shape) count *= n;
    require(count == size_of(d.values), "[hdf5] the shape of {} holds {} values, {} are given", where, count,
            size_of(d.values));
    require(count > 0, "[hdf5] {} is empty: leave it out", where);
    for (std::size_t axis = 0; options_.scales && axis < d.shape.size(); ++axis) {
      const Dataset* scale = tree.find(d.dimensions[axis]);
      if (!scale) continue;
      require(is_scale(*scale), "[hdf5] {} names a dimension of {} but is not a vector along itself",
              scale->name, where);
      require(scale->shape[0] == d.shape[axis], "[hdf5] dimension {} of {} has length {}, its scale {}",
              d.dimensions[axis], where, d.shape[axis], scale->shape[0]);
    }
  }
}

void TreeWriter::write_scales(hid_t group, const std::string& path, const Group& tree, Scales& scales) {
  for (const Dataset& d : tree.datasets)
    if (is_scale(d)) scales.emplace(d.name, write_dataset(group, path, d));
  std::map<std::string, std::size_t> lengths;
  for (const Dataset& d : tree.datasets) {
    for (std::size_t axis = 0; axis < d.shape.size(); ++axis) {
      const std::string& name = d.dimensions[axis];
      const auto [it, is_new] = lengths.emplace(name, d.shape[axis]);
      require(it->second == d.shape[axis], "[hdf5] dimension {} in {} has lengths {} and {}", name,
              at(file_, path), it->second, d.shape[axis]);
      if (scales.contains(name)) continue;
      std::vector<std::int32_t> index(d.shape[axis]);
      std::iota(index.begin(), index.end(), 0);
      Dataset scale;
      scale.name = name;
      scale.shape = {index.size()};
      scale.dimensions = {name};
      scale.values = std::move(index);
      scale.meaning = {"1", "index of " + name};
      scales.emplace(name, write_dataset(group, path, scale));
    }
  }
  for (const auto& [name, scale] : scales)
    check(H5DSset_scale(scale.get(), name.c_str()), "make a dimension scale of",
          at(file_, child_path(path, name)));
}

void TreeWriter::write_group(hid_t group, const std::string& path, const Group& tree) {
  check_names(path, tree);
  for (const Attribute& a : tree.attributes)
    write_attribute(group, path.empty() ? "/" : path, a.name, a.value);
  Scales scales;
  if (options_.scales) write_scales(group, path, tree, scales);
  for (const Dataset& d : tree.datasets) {
    if (options_.scales && is_scale(d)) continue;
    const std::string where = at(file_, child_path(path, d.name));
    Handle dataset = write_dataset(group, path, d);
    for (std::size_t axis = 0; options_.scales && axis < d.dimensions.size(); ++axis)
      check(H5DSattach_scale(dataset.get(), scales.at(d.dimensions[axis]).get(), static_cast<unsigned>(axis)),
            "attach a dimension scale to", where);
    dataset.close(where);
  }
  for (auto& [name, scale] : scales) scale.close(at(file_, child_path(path, name)));

  const auto write_child = [&](const std::string& name, const Group& child) {
    const std::string where = at(file_, child_path(path, name));
    const Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "create", where);
    check(H5Pset_link_creation_order(properties.get(), kTracked), "create", where);
    check(H5Pset_attr_creation_order(properties.get(), kTracked), "create", where);
    Handle handle(H5Gcreate2(group, name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose,
                  "create", where);
    write_group(handle.get(), child_path(path, name), child);
    handle.close(where);
  };
  for (const Group& child : tree.groups) write_child(child.name, child);
  for (const Group::Deferred& d : tree.deferred) write_child(d.name, d.make());
}

Handle TreeWriter::creation_properties(const std::string& path, const Dataset& dataset,
                                       std::size_t element_bytes) const {
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "create", path);
  check(H5Pset_attr_creation_order(properties.get(), kTracked), "create", path);
  const bool is_text = std::holds_alternative<std::vector<std::string>>(dataset.values);
  const std::size_t bytes = size_of(dataset.values) * element_bytes;
  if (is_text || dataset.shape.empty() || !options_.compress || bytes <= kContiguousBytes) return properties;

  std::vector<hsize_t> chunk(dataset.shape.begin(), dataset.shape.end());
  const std::size_t row_bytes = bytes / dataset.shape[0];
  if (row_bytes > kMaxChunkBytes) return properties;
  const std::size_t rows =
      chunk.size() == 1
          ? kChunkElements
          : std::clamp<std::size_t>(kChunkBytes / row_bytes,
                                    std::min<std::size_t>(16, kMaxChunkBytes / row_bytes), kChunkRows);
  chunk[0] = std::min<hsize_t>(chunk[0], rows);
  check(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()), "choose chunks of",
        path);
  check(H5Pset_shuffle(properties.get()), "compress", path);
  check(H5Pset_deflate(properties.get(), 4), "compress", path);
  return properties;
}

void TreeWriter::write_values(hid_t group, const std::string& path, const Dataset& dataset, Handle& out) {
  const std::string where = at(file_, path);
  const std::vector<hsize_t> shape(dataset.shape.begin(), dataset.shape.end());
  const Handle space(shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                     H5Sclose, "create", where);
  std::visit(
      [&](const auto& v) {
        using T = std::remove_const_t<std::remove_reference_t<decltype(v[0])>>;
        Handle properties = creation_properties(where, dataset, sizeof(T));
        if constexpr (std::is_same_v<T, std::string>) {
          const Handle type = string_type();
          out = Handle(H5Dcreate2(group, dataset.name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                  properties.get(), H5P_DEFAULT),
                       H5Dclose, "create", where);
          check(H5Dwrite(out.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers_to(v, where).data()),
                "write", where);
        } else {
          if (dataset.fill) {
            const T fill = static_cast<T>(*dataset.fill);
            check(H5Pset_fill_value(properties.get(), TypeOf<T>::memory(), &fill), "create", where);
          }
          out = Handle(H5Dcreate2(group, dataset.name.c_str(), TypeOf<T>::file(), space.get(), H5P_DEFAULT,
                                  properties.get(), H5P_DEFAULT),
                       H5Dclose, "create", where);
          if (dataset.fill) {
            const T fill = static_cast<T>(*dataset.fill);
            const hsize_t one = 1;
            const Handle one_space(H5Screate_simple(1, &one, nullptr), H5Sclose, "create", where);
            write_simple_attribute(out.get(), "_FillValue", where, one_space.get(), &fill);
          }
          check(H5Dwrite(out.get(), TypeOf<T>::memory(), H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data()), "write",
                where);
        }
      },
      dataset.values);
  written_.push_back({path, size_of(dataset.values), checksum_of_values(dataset.values)});
}

Handle TreeWriter::write_dataset(hid_t group, const std::string& path, const Dataset& dataset) {
  const std::string full = child_path(path, dataset.name);
  Handle handle;
  write_values(group, full, dataset, handle);
  if (!dataset.meaning.long_name.empty())
    write_attribute(handle.get(), full, "long_name", dataset.meaning.long_name);
  if (!dataset.meaning.units.empty()) write_attribute(handle.get(), full, "units", dataset.meaning.units);
  for (const Attribute& a : dataset.attributes) write_attribute(handle.get(), full, a.name, a.value);
  return handle;
}

}  // namespace moelab::hdf5

#include "core/damaged_file.hpp"
#include "core/hdf5.hpp"
#include "core/hdf5_handle.hpp"
#include "core/hdf5_open.hpp"
#include "core/hdf5_parts.hpp"
#include "core/hdf5_values.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace moelab::hdf5 {

struct Reader::State {
  std::filesystem::path path;
  Handle file;
};

namespace {

std::string object_name(const std::string& object) { return object.empty() ? "/" : object; }

std::string at(const std::filesystem::path& file, const std::string& object) {
  return object_name(object) + " of " + file.string();
}

herr_t first_scale_name(hid_t, unsigned, hid_t scale, void* data) {
  std::array<char, 256> name{};
  if (H5DSget_scale_name(scale, name.data(), name.size()) > 0) *static_cast<std::string*>(data) = name.data();
  return 1;
}

}  // namespace

Reader::Reader(std::filesystem::path path) : state_(std::make_unique<State>()) {
  const LibraryLock lock;
  require(std::filesystem::exists(path), "[hdf5] there is no file {}", path.string());
  state_->path = std::move(path);
  const std::string file = state_->path.string();
  require(std::filesystem::is_regular_file(state_->path), "[hdf5] {} is not a file", file);
  state_->file = Handle(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "open", file);
}

Reader::~Reader() {
  const LibraryLock lock;
  state_.reset();
}

Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

const std::filesystem::path& Reader::path() const { return state_->path; }

bool Reader::has(const std::string& object) const {
  const LibraryLock lock;
  return look_for(state_->file.get(), object) > 0;
}

std::vector<std::string> Reader::groups(const std::string& group) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, group);
  return children(open_group(state_->file.get(), group, where).get(), where, H5O_TYPE_GROUP);
}

std::vector<std::string> Reader::datasets(const std::string& group) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, group);
  return children(open_group(state_->file.get(), group, where).get(), where, H5O_TYPE_DATASET);
}

std::vector<std::size_t> Reader::shape(const std::string& dataset) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, dataset);
  return dataset_extent(open_dataset(state_->file.get(), dataset, where).get(), where).shape;
}

template <class T>
std::vector<T> Reader::read(const std::string& dataset) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, dataset);
  return dataset_values<T>(open_dataset(state_->file.get(), dataset, where).get(), where);
}
template std::vector<float> Reader::read(const std::string&) const;
template std::vector<double> Reader::read(const std::string&) const;
template std::vector<std::int32_t> Reader::read(const std::string&) const;
template std::vector<std::int64_t> Reader::read(const std::string&) const;
template std::vector<std::uint8_t> Reader::read(const std::string&) const;
template std::vector<std::string> Reader::read(const std::string&) const;

template <class T>
Array<T> Reader::read_array(const std::string& dataset, std::initializer_list<std::size_t> wanted) const {
  const LibraryLock lock;
  Array<T> array{shape(dataset), {}};
  const bool fits = std::ranges::equal(
      array.shape, wanted, [](std::size_t is, std::size_t want) { return want == kAnyLength || is == want; });
  if (!fits) {
    std::vector<std::string> lengths;
    for (const std::size_t length : wanted)
      lengths.push_back(length == kAnyLength ? "any" : std::to_string(length));
    throw DamagedFile(fmt::format("[hdf5] {} has the shape ({}) instead of ({})", at(state_->path, dataset),
                                  fmt::join(array.shape, ", "), fmt::join(lengths, ", ")));
  }
  array.values = read<T>(dataset);
  return array;
}
template Array<float> Reader::read_array(const std::string&, std::initializer_list<std::size_t>) const;
template Array<double> Reader::read_array(const std::string&, std::initializer_list<std::size_t>) const;
template Array<std::int32_t> Reader::read_array(const std::string&, std::initializer_list<std::size_t>) const;
template Array<std::int64_t> Reader::read_array(const std::string&, std::initializer_list<std::size_t>) const;
template Array<std::string> Reader::read_array(const std::string&, std::initializer_list<std::size_t>) const;

template <class T>
void Reader::read_into(const std::string& dataset, std::span<T> values) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, dataset);
  const Handle handle = open_dataset(state_->file.get(), dataset, where);
  require_number(handle.get(), where);
  const std::size_t count = dataset_extent(handle.get(), where).count;
  require_whole(count == values.size(), "[hdf5] {} holds {} values, {} are wanted", where, count,
                values.size());
  check(H5Dread(handle.get(), TypeOf<T>::memory(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read",
        where);
}
template void Reader::read_into(const std::string&, std::span<float>) const;
template void Reader::read_into(const std::string&, std::span<double>) const;

std::string Reader::text(const std::string& dataset) const {
  std::vector<std::string> strings = read<std::string>(dataset);
  require_whole(strings.size() == 1, "[hdf5] {} holds {} strings, one is wanted", at(state_->path, dataset),
                strings.size());
  return std::move(strings[0]);
}

std::optional<AttributeValue> Reader::attribute(const std::string& object, const std::string& name) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, object);
  const Handle handle(H5Oopen(state_->file.get(), object_name(object).c_str(), H5P_DEFAULT), H5Oclose, "open",
                      where);
  return attribute_of(handle.get(), name, where);
}

std::string Reader::text_attribute(const std::string& object, const std::string& name) const {
  const auto value = attribute(object, name);
  return value && std::holds_alternative<std::string>(*value) ? std::get<std::string>(*value) : std::string();
}

Dataset Reader::dataset(const std::string& dataset) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, dataset);
  const Handle handle = open_dataset(state_->file.get(), dataset, where);
  Dataset result;
  result.name = dataset.substr(dataset.rfind('/') + 1);
  result.values = dataset_as_stored(handle.get(), where);
  result.shape = dataset_extent(handle.get(), where).shape;
  if (check(H5DSis_scale(handle.get()), "read", where) > 0) {
    result.dimensions = {result.name};
  } else {
    for (unsigned axis = 0; axis < result.shape.size(); ++axis) {
      std::string name;
      if (H5DSget_num_scales(handle.get(), axis) > 0)
        check(H5DSiterate_scales(handle.get(), axis, nullptr, first_scale_name, &name), "read the scales of",
              where);
      result.dimensions.push_back(name);
    }
  }
  result.meaning = {text_attribute(dataset, "units"), text_attribute(dataset, "long_name")};
  if (const auto fill = attribute_of(handle.get(), "_FillValue", where)) {
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_arithmetic_v<T>) {
            result.fill = static_cast<double>(v);
          } else if constexpr (!std::is_same_v<T, std::string> &&
                               !std::is_same_v<T, std::vector<std::string>>) {
            result.fill = static_cast<double>(v.at(0));
          }
        },
        *fill);
  }
  result.attributes = read_attributes(handle.get(), where);
  return result;
}

Group Reader::group(const std::string& group) const {
  std::set<Address> seen;
  return tree(group, seen);
}

Group Reader::tree(const std::string& group, std::set<Address>& seen) const {
  const LibraryLock lock;
  const std::string where = at(state_->path, group);
  const std::string prefix = group.empty() ? "" : group + "/";
  Group result;
  result.name = group.substr(group.rfind('/') + 1);
  {
    const Handle handle = open_group(state_->file.get(), group, where);
    H5O_info_t info;
    check(H5Oget_info(handle.get(), &info), "read", where);
    require_whole(seen.emplace(info.fileno, info.addr).second,
                  "[hdf5] {} is also another group: groups must form a tree", where);
    result.attributes = read_attributes(handle.get(), where);
  }
  for (const std::string& name : datasets(group)) result.datasets.push_back(dataset(prefix + name));
  for (const std::string& name : groups(group)) result.groups.push_back(tree(prefix + name, seen));
  return result;
}

}  // namespace moelab::hdf5

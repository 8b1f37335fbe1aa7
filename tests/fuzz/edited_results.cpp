#include "tests/fuzz/edited_results.hpp"

#include "core/hdf5.hpp"
#include "tests/experiments/results/example_run.hpp"
#include "tests/support/temporary_folder.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace moelab {

namespace {

using hdf5::AttributeValue;
using hdf5::Dataset;
using hdf5::Group;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<double, 12> kNumbers = {0,   1,   -1,    2.5,        1e-310,    1e300,
                                             127, 255, 65536, 2147483647, kInfinity, -kInfinity};

double number(std::uint8_t choice) {
  return choice % 13 == 12 ? std::numeric_limits<double>::quiet_NaN() : kNumbers[choice % 13];
}

std::string text(std::uint8_t choice) {
  const std::array<std::string, 6> texts = {"",         "dense",    "../../up",
                                            "<script>", "\xff\xfe", std::string(3000, 'n')};
  return texts[choice % texts.size()];
}

// A conversion that is defined for every number.
template <class T>
T converted(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    if (!(value > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
    if (!(value < static_cast<double>(std::numeric_limits<T>::max()))) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  }
}

template <class T>
T any_value(std::uint8_t choice) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text(choice);
  } else {
    return converted<T>(number(choice));
  }
}

void set_size(Dataset& dataset, std::size_t size) {
  std::visit(
      [&](auto& values) {
        if constexpr (requires { values.resize(size); }) values.resize(size);
      },
      dataset.values);
}

// All values, or the one at `where`.
void set_values(Dataset& dataset, bool all, std::uint8_t where, std::uint8_t choice) {
  std::visit(
      [&](auto& values) {
        using V = std::remove_cvref_t<decltype(values)>;
        if constexpr (requires { values.resize(1); }) {
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (all || i == where % values.size()) values[i] = any_value<typename V::value_type>(choice);
          }
        }
      },
      dataset.values);
}

// A first axis of another length, under a name of its own, so that the file can be written.
void set_length(Dataset& dataset, std::size_t length) {
  if (dataset.shape.empty()) return;
  const std::size_t row = dataset.shape[0] == 0 ? 1 : hdf5::size_of(dataset.values) / dataset.shape[0];
  dataset.shape[0] = length;
  dataset.dimensions[0] = dataset.name + "_changed";
  set_size(dataset, length * row);
}

void change_dataset(Group& group, std::size_t index, std::uint8_t how, std::uint8_t choice) {
  Dataset& dataset = group.datasets[index];
  const std::size_t size = hdf5::size_of(dataset.values);
  switch (how % 9) {
    case 0:
      group.datasets.erase(group.datasets.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    case 1:
      set_length(dataset, choice % 4);
      break;
    case 2:
      set_length(dataset, 1000 + choice);
      break;
    case 3:
      set_values(dataset, true, 0, choice);
      break;
    case 4:
      set_values(dataset, false, how, choice);
      break;
    case 5:
      dataset.values = std::vector<std::string>(size, text(choice));
      dataset.fill.reset();
      break;
    case 6:
      dataset.values = std::vector<double>(size, number(choice));
      dataset.fill.reset();
      break;
    case 7:
      dataset.shape.clear();
      dataset.dimensions.clear();
      set_size(dataset, 1);
      break;
    default:
      dataset.name = text(choice);
  }
}

void change_attribute(std::vector<hdf5::Attribute>& attributes, std::size_t index, std::uint8_t how,
                      std::uint8_t choice) {
  switch (how % 6) {
    case 0:
      attributes.erase(attributes.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    case 1:
      attributes[index].value = text(choice);
      break;
    case 2:
      attributes[index].value = number(choice);
      break;
    case 3:
      attributes[index].value = converted<std::int64_t>(number(choice));
      break;
    case 4:
      attributes[index].value = std::vector<double>(choice % 3, number(choice));
      break;
    default:
      attributes[index].value = std::vector<std::string>(choice % 3, text(choice));
  }
}

void change_group(Group& parent, std::size_t index, std::uint8_t how, std::uint8_t choice) {
  switch (how % 3) {
    case 0:
      parent.groups.erase(parent.groups.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    case 1: {
      const std::string name = parent.groups[index].name;
      parent.groups[index] = Group(parent.groups[choice % parent.groups.size()]);
      parent.groups[index].name = name;
      break;
    }
    default:
      parent.groups[index].name = text(choice);
  }
}

// Changes the thing at `place`, counted over the whole tree; false where there are fewer things below the
// group.
bool change(Group& group, std::size_t& place, std::uint8_t how, std::uint8_t choice) {
  const auto is_here = [&](std::size_t count) {
    if (place < count) return true;
    place -= count;
    return false;
  };
  if (is_here(group.attributes.size())) {
    change_attribute(group.attributes, place, how, choice);
    return true;
  }
  if (is_here(group.datasets.size())) {
    change_dataset(group, place, how, choice);
    return true;
  }
  for (Dataset& dataset : group.datasets) {
    if (!is_here(dataset.attributes.size())) continue;
    change_attribute(dataset.attributes, place, how, choice);
    return true;
  }
  if (is_here(group.groups.size())) {
    change_group(group, place, how, choice);
    return true;
  }
  for (Group& child : group.groups) {
    if (change(child, place, how, choice)) return true;
  }
  return false;
}

Group example_tree() {
  const TemporaryFolder folder;
  return hdf5::Reader(write_example_results(folder.path())).group();
}

}  // namespace

void write_edited_results(const std::filesystem::path& path, std::string_view script) {
  static const Group example = example_tree();
  Group tree = example;
  for (std::size_t i = 0; i + 4 <= script.size(); i += 4) {
    const auto byte = [&](std::size_t b) { return static_cast<std::uint8_t>(script[i + b]); };
    std::size_t place = byte(0) * std::size_t{256} + byte(1);
    change(tree, place, byte(2), byte(3));
  }
  hdf5::write_file(path, tree);
}

}  // namespace moelab

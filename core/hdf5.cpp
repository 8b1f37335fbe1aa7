// The tree as a value. Writing is in hdf5_write.cpp, reading in hdf5_read.cpp.
#include "core/hdf5.hpp"

#include <algorithm>
#include <numeric>

namespace moelab::hdf5 {

std::size_t size_of(const Values& values) {
  return std::visit([](const auto& v) { return v.size(); }, values);
}

void Group::attribute(std::string attribute_name, AttributeValue value) {
  attributes.push_back({std::move(attribute_name), std::move(value)});
}

void Group::series(std::string dataset_name, std::string dimension, Values values, Meaning meaning) {
  const std::size_t n = size_of(values);
  array(std::move(dataset_name), {std::move(dimension)}, {n}, std::move(values), std::move(meaning));
}

void Group::array(std::string dataset_name, std::vector<std::string> dimensions,
                  std::vector<std::size_t> shape, Values values, Meaning meaning) {
  Dataset dataset;
  dataset.name = std::move(dataset_name);
  dataset.values = std::move(values);
  dataset.shape = std::move(shape);
  dataset.dimensions = std::move(dimensions);
  dataset.meaning = std::move(meaning);
  datasets.push_back(std::move(dataset));
}

void Group::text(std::string dataset_name, std::string text, std::string long_name) {
  array(std::move(dataset_name), {}, {}, std::vector<std::string>{std::move(text)},
        {"", std::move(long_name)});
}

Group& Group::group(std::string_view group_name) {
  const auto it = std::ranges::find(groups, group_name, &Group::name);
  if (it != groups.end()) return *it;
  groups.emplace_back().name = group_name;
  return groups.back();
}

const Dataset* Group::find(std::string_view dataset_name) const {
  const auto it = std::ranges::find(datasets, dataset_name, &Dataset::name);
  return it == datasets.end() ? nullptr : &*it;
}

const Group* Group::find_group(std::string_view group_name) const {
  const auto it = std::ranges::find(groups, group_name, &Group::name);
  return it == groups.end() ? nullptr : &*it;
}

const Attribute* Group::find_attribute(std::string_view attribute_name) const {
  const auto it = std::ranges::find(attributes, attribute_name, &Attribute::name);
  return it == attributes.end() ? nullptr : &*it;
}

void set_flags(Dataset& dataset, std::span<const std::string> meanings) {
  std::vector<std::uint8_t> values(meanings.size());
  std::iota(values.begin(), values.end(), std::uint8_t{0});
  std::string words;
  for (const std::string& meaning : meanings) words += (words.empty() ? "" : " ") + meaning;
  dataset.attributes.push_back({"flag_values", std::move(values)});
  dataset.attributes.push_back({"flag_meanings", std::move(words)});
}

}  // namespace moelab::hdf5

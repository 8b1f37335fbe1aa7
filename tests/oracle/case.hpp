// One case of an oracle file: inputs, weights, and what must come out, in float64.
//
// The format: one group a case, with the attributes kind, config (YAML), mode, batch, seq_len, micro_batches,
// and the groups input/, weights/, output/ and grad/ of datasets; `probe` is what the main output is
// multiplied with before it is summed into the loss.
#pragma once

#include "core/hdf5.hpp"
#include "core/tensor.hpp"
#include "core/yaml.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moelab::oracle {

struct Array {
  std::vector<std::size_t> shape;
  std::vector<double> values;
  bool is_integer = false;

  Index rows() const;  // a vector is one row; further dimensions are columns
  Index cols() const;
  Matrix matrix() const;
  std::vector<std::int32_t> ids() const;
};

using Arrays = std::map<std::string, Array>;

struct Case {
  std::string name;
  std::string kind;
  yaml::Node config;
  bool training = false;  // mode: train
  std::optional<Index> batch, seq_len;
  Index micro_batches = 1;
  std::optional<Index> d_model;
  Arrays input, weights, output, grad;
  std::map<std::string, std::vector<std::string>> text;  // input datasets of strings
  std::optional<Array> probe;

  // Error that names the case where there is none.
  const Array& input_of(const std::string& dataset) const;
  const Array& weight_of(const std::string& dataset) const;
  // The config as a struct with fields(). Error with all that is wrong in it.
  template <class T>
  T config_as() const;
};

std::vector<std::string> case_names(const hdf5::Reader& file);
Case read_case(const hdf5::Reader& file, const std::string& name);

}  // namespace moelab::oracle

#include "core/fields_reader.hpp"

namespace moelab::oracle {

template <class T>
T read_config(const yaml::Node& node) {
  T value;
  Diagnostics diagnostics;
  read_fields(node, value, diagnostics);
  diagnostics.throw_if_errors();
  return value;
}

template <class T>
T Case::config_as() const {
  return read_config<T>(config);
}

}  // namespace moelab::oracle

#include "tests/oracle/case.hpp"

#include "core/error.hpp"

#include <numeric>

namespace moelab::oracle {

namespace {

Array read_array(const hdf5::Reader& file, const std::string& path) {
  Array array;
  array.shape = file.shape(path);
  array.values = file.read<double>(path);
  array.is_integer = std::holds_alternative<std::vector<std::int64_t>>(file.dataset(path).values);
  return array;
}

bool is_text(const hdf5::Reader& file, const std::string& path) {
  return std::holds_alternative<std::vector<std::string>>(file.dataset(path).values);
}

Arrays read_arrays(const hdf5::Reader& file, const std::string& group, Case& c) {
  Arrays arrays;
  if (!file.has(group)) return arrays;
  for (const std::string& name : file.datasets(group)) {
    const std::string path = group + "/" + name;
    if (is_text(file, path)) {
      c.text[name] = file.read<std::string>(path);
    } else {
      arrays[name] = read_array(file, path);
    }
  }
  return arrays;
}

std::optional<Index> integer_attribute(const hdf5::Reader& file, const std::string& group, const char* name) {
  const auto value = file.attribute(group, name);
  if (!value) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&*value)) return *integer;
  fail("[oracle] {}: the attribute {} is not an integer", group, name);
}

std::string text_attribute(const hdf5::Reader& file, const std::string& group, const char* name,
                           const std::string& otherwise) {
  const auto value = file.attribute(group, name);
  if (!value) return otherwise;
  if (const auto* text = std::get_if<std::string>(&*value)) return *text;
  fail("[oracle] {}: the attribute {} is not a text", group, name);
}

const Array& find(const Arrays& arrays, const std::string& dataset, const Case& c) {
  const auto found = arrays.find(dataset);
  require(found != arrays.end(), "[oracle] {} has no dataset {}", c.name, dataset);
  return found->second;
}

}  // namespace

Index Array::rows() const { return shape.size() < 2 ? 1 : static_cast<Index>(shape[0]); }

Index Array::cols() const { return rows() == 0 ? 0 : static_cast<Index>(values.size()) / rows(); }

Matrix Array::matrix() const {
  Matrix m(rows(), cols());
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = static_cast<Scalar>(values[static_cast<std::size_t>(i)]);
  return m;
}

std::vector<std::int32_t> Array::ids() const { return {values.begin(), values.end()}; }

const Array& Case::input_of(const std::string& dataset) const { return find(input, dataset, *this); }
const Array& Case::weight_of(const std::string& dataset) const { return find(weights, dataset, *this); }

std::vector<std::string> case_names(const hdf5::Reader& file) {
  const auto format = file.attribute("", "format");
  require(format && std::get_if<std::int64_t>(&*format) != nullptr && std::get<std::int64_t>(*format) == 1,
          "[oracle] {} is not an oracle file of format 1", file.path().string());
  return file.groups();
}

Case read_case(const hdf5::Reader& file, const std::string& name) {
  Case c;
  c.name = name;
  c.kind = text_attribute(file, name, "kind", "");
  const auto source = yaml::make_source(name + ".config", text_attribute(file, name, "config", ""));
  Diagnostics diagnostics;
  c.config = yaml::parse(source->text, source, diagnostics);
  diagnostics.throw_if_errors();
  c.training = text_attribute(file, name, "mode", "train") == "train";
  c.batch = integer_attribute(file, name, "batch");
  c.seq_len = integer_attribute(file, name, "seq_len");
  c.d_model = integer_attribute(file, name, "d_model");
  c.micro_batches = integer_attribute(file, name, "micro_batches").value_or(1);
  c.input = read_arrays(file, name + "/input", c);
  c.weights = read_arrays(file, name + "/weights", c);
  c.output = read_arrays(file, name + "/output", c);
  c.grad = read_arrays(file, name + "/grad", c);
  if (file.has(name + "/probe")) c.probe = read_array(file, name + "/probe");
  return c;
}

}  // namespace moelab::oracle

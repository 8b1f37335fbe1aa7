#include "tests/oracle/binding.hpp"

#include "core/error.hpp"
#include "core/ops/elementwise.hpp"
#include "core/ops/reduce.hpp"

#include <cmath>
#include <set>

namespace moelab::oracle {

BoundModule::BoundModule(Module& module, const Case& c, std::string prefix, const std::string& absent)
    : store_(module, 0), prefix_(std::move(prefix)) {
  std::set<std::string> used;
  const auto fill = [&](const std::string& path, MatrixView value) {
    const Array& array = c.weight_of(prefix_ + path);
    require(static_cast<Index>(array.values.size()) == value.size(),
            "[oracle] {}: {} is ({}, {}) in the library and has {} values in the file", c.name, path,
            value.rows(), value.cols(), array.values.size());
    for (Index i = 0; i < value.size(); ++i) {
      value.data()[i] = static_cast<Scalar>(array.values[static_cast<std::size_t>(i)]);
    }
    used.insert(prefix_ + path);
  };
  for (const NamedParameter& p : store_.parameters()) {
    const bool given = c.weights.count(prefix_ + p.path) != 0;
    if (!given && !absent.empty() && p.path.rfind(absent, 0) == 0) continue;
    fill(p.path, p.parameter->value());
    p.parameter->mark_changed();
  }
  for (const NamedState& s : states(module)) {
    const bool given = c.weights.count(prefix_ + s.path) != 0;
    if (given) fill(s.path, MatrixView(s.state->data(), s.state->rows(), s.state->cols()));
  }
  for (const auto& [name, array] : c.weights) {
    const bool mine = name.rfind(prefix_, 0) == 0;
    require(!mine || used.count(name) != 0, "[oracle] {}: the library has no parameter or state {}", c.name,
            name);
  }
  store_.zero_grads();
}

void BoundModule::gradients(Comparison& comparison) {
  for (const NamedParameter& p : store_.parameters()) {
    comparison.gradient(prefix_ + p.path, p.parameter->grad());
  }
}

Variable probed(const Variable& y, const Array& probe) {
  return ops::sum(ops::multiply(y, Variable(probe.matrix())));
}

double absolute_terms(const Variable& y, const Array& probe) {
  return static_cast<double>(y.value().cwiseProduct(probe.matrix()).cwiseAbs().sum());
}

std::optional<double> number_at(const yaml::Node& mapping, const std::string& key) {
  const yaml::Node* node = mapping.find(key);
  if (node == nullptr || node->is_null()) return std::nullopt;
  std::size_t end = 0;
  const double value = node->is_scalar() ? std::stod(node->text, &end) : 0;
  require(node->is_scalar() && end == node->text.size(), "[oracle] {} is not a number", key);
  return value;
}

double number_at(const yaml::Node& mapping, const std::string& key, double otherwise) {
  return number_at(mapping, key).value_or(otherwise);
}

Index integer_at(const yaml::Node& mapping, const std::string& key, Index otherwise) {
  return static_cast<Index>(std::llround(number_at(mapping, key, static_cast<double>(otherwise))));
}

std::string text_at(const yaml::Node& mapping, const std::string& key, const std::string& otherwise) {
  const yaml::Node* node = mapping.find(key);
  return node == nullptr ? otherwise : node->text;
}

bool flag_at(const yaml::Node& mapping, const std::string& key, bool otherwise) {
  return text_at(mapping, key, otherwise ? "true" : "false") == "true";
}

const yaml::Node& node_at(const yaml::Node& mapping, const std::string& key) {
  const yaml::Node* node = mapping.find(key);
  require(node != nullptr, "[oracle] the config has no '{}'", key);
  return *node;
}

}  // namespace moelab::oracle

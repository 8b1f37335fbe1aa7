// Weights of a case in a module, and small helpers of the kinds.
#pragma once

#include "core/autograd.hpp"
#include "core/module.hpp"
#include "core/schedule.hpp"
#include "tests/oracle/comparison.hpp"

#include <optional>
#include <string>

namespace moelab::oracle {

// Gives a module storage, and fills its parameters and states from the weights of a case, by path. Weights
// that the module does not have, and parameters that the case does not have, are errors. `prefix` stands
// before the names in the file. Parameters whose path starts with `absent` (if not empty) may be missing, and
// stay as they are.
class BoundModule {
 public:
  BoundModule(Module& module, const Case& c, std::string prefix = {}, const std::string& absent = {});
  ParameterStore& store() { return store_; }
  // Hands the gradients of all parameters over.
  void gradients(Comparison& comparison);

 private:
  ParameterStore store_;
  std::string prefix_;
};

// sum(y * probe), and the sum of the absolute values of its terms.
Variable probed(const Variable& y, const Array& probe);
double absolute_terms(const Variable& y, const Array& probe);

// Values of a mapping in a case's config. Nothing where there is no such key; error where it is no number.
std::optional<double> number_at(const yaml::Node& mapping, const std::string& key);
double number_at(const yaml::Node& mapping, const std::string& key, double otherwise);
Index integer_at(const yaml::Node& mapping, const std::string& key, Index otherwise);
std::string text_at(const yaml::Node& mapping, const std::string& key, const std::string& otherwise);
bool flag_at(const yaml::Node& mapping, const std::string& key, bool otherwise);
// Error where it is missing.
const yaml::Node& node_at(const yaml::Node& mapping, const std::string& key);
// From `schedule`, `max_steps` and `batch_tokens` of a `train:` block.
Schedule schedule_of(const yaml::Node& train);

}  // namespace moelab::oracle

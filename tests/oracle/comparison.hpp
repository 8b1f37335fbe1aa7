// Compares what the library computed with what a case expects. A dataset of the case that nothing was
// compared with is a failure: a case passes only whole.
#pragma once

#include "tests/oracle/case.hpp"

#include <set>
#include <span>
#include <string>
#include <vector>

namespace moelab::oracle {

class Comparison {
 public:
  explicit Comparison(const Case& c);

  // Rows (of datasets with one row a token) that are padding: nothing is compared there.
  void skip_rows(std::vector<bool> is_padding) { is_padding_ = std::move(is_padding); }

  void output(const std::string& name, std::span<const double> values);
  void output(const std::string& name, In values);
  void output(const std::string& name, double value) { output(name, std::span<const double>(&value, 1)); }
  void gradient(const std::string& name, In values);
  // The loss is a sum that may cancel: `terms` is the sum of the absolute values of what was added.
  void loss(double value, double terms);
  // This dataset is not what the library computes, and is compared nowhere.
  void ignore_output(const std::string& name) { compared_.insert("output/" + name); }
  bool wants(const std::string& output) const { return case_->output.count(output) != 0; }

  struct Result {
    bool passed = true;
    double worst = 0;        // largest error over its tolerance's base (the largest value of the dataset)
    std::string worst_name;  // of that dataset
    std::vector<std::string> failures;
  };
  // Adds the datasets that were not compared to the failures.
  Result result() const;

 private:
  void compare(const std::string& name, const Array& expected, std::span<const double> values, double scale);
  const Case* case_;
  std::vector<bool> is_padding_;
  std::set<std::string> compared_;
  Result result_;
};

}  // namespace moelab::oracle

#include "tests/oracle/comparison.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>

namespace moelab::oracle {

namespace {

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }
bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// Datasets with a row a token.
const std::set<std::string> kByToken{"output/logits",  "output/scores",   "output/ids",  "output/weights",
                                     "output/combine", "output/dispatch", "output/kept", "output/y",
                                     "grad/logits",    "grad/x"};

struct Tolerance {
  double relative = 0;  // of the largest value of the dataset
  double absolute = 0;
};

// As the page of the reference values states them for float64.
Tolerance tolerance_of(const std::string& kind, const std::string& name) {
  if (kind == "clip" && name != "output/norm") return {1e-6, 0};
  if (name == "output/expert_bias_next") return {0, 1e-7};
  if (name == "output/lr") return {1e-12, 0};
  if (kind == "train_trajectory" && starts_with(name, "output/")) {
    if (ends_with(name, ".attn.bk")) return {0, 1e-6};
    return {1e-7, 0};
  }
  return {1e-9, 0};
}

// Gradients of experts that no token reached are zeros, not small numbers.
bool must_be_exact(const Array& expected, const std::string& name) {
  if (expected.is_integer) return true;
  const bool all_zero =
      std::all_of(expected.values.begin(), expected.values.end(), [](double v) { return v == 0; });
  return all_zero && starts_with(name, "grad/") && name.find("experts.") != std::string::npos;
}

}  // namespace

Comparison::Comparison(const Case& c) : case_(&c) {}

void Comparison::output(const std::string& name, std::span<const double> values) {
  const auto found = case_->output.find(name);
  if (found != case_->output.end()) compare("output/" + name, found->second, values, 0);
}

void Comparison::output(const std::string& name, In values) {
  const std::vector<double> copy(values.data(), values.data() + values.size());
  output(name, std::span<const double>(copy));
}

void Comparison::gradient(const std::string& name, In values) {
  const auto found = case_->grad.find(name);
  if (found == case_->grad.end()) return;
  const std::vector<double> copy(values.data(), values.data() + values.size());
  compare("grad/" + name, found->second, copy, 0);
}

void Comparison::loss(double value, double terms) {
  const auto found = case_->output.find("loss");
  if (found != case_->output.end()) compare("output/loss", found->second, {&value, 1}, 1 + terms);
}

void Comparison::compare(const std::string& name, const Array& expected, std::span<const double> values,
                         double scale) {
  compared_.insert(name);
  if (values.size() != expected.values.size()) {
    result_.failures.push_back(
        fmt::format("{}: {} values, expected {}", name, values.size(), expected.values.size()));
    return;
  }
  const bool by_token = !is_padding_.empty() && kByToken.count(name) != 0 && expected.shape.size() == 2 &&
                        expected.shape[0] == is_padding_.size();
  const std::size_t cols = expected.shape.size() == 2 ? expected.shape[1] : 1;
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // A padding row has a zero gradient, and nothing else is said of it.
    const bool padding = by_token && is_padding_[i / std::max<std::size_t>(cols, 1)];
    if (padding && !starts_with(name, "grad/")) continue;
    const double difference = padding ? std::abs(values[i]) : std::abs(values[i] - expected.values[i]);
    error = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(error, difference);
    largest = std::max(largest, std::abs(expected.values[i]));
  }
  const Tolerance tolerance = tolerance_of(case_->kind, name);
  double bound = tolerance.absolute + tolerance.relative * (scale > 0 ? scale : largest);
  if (tolerance.absolute == 0 && scale == 0 && largest < 1e-12) bound = 1e-12;
  if (must_be_exact(expected, name)) bound = 0;
  const double base = scale > 0 ? scale : largest >= 1e-12 ? largest : 1;
  if (!(error <= bound)) {
    result_.failures.push_back(fmt::format("{}: differs by {:.1e}, allowed {:.1e} (largest value {:.3g})",
                                           name, error, bound, largest));
  }
  if (error / base >= result_.worst) {
    result_.worst = error / base;
    result_.worst_name = name;
  }
}

Comparison::Result Comparison::result() const {
  Result r = result_;
  const auto add_missing = [&](const std::string& group, const Arrays& arrays) {
    for (const auto& [name, array] : arrays) {
      if (compared_.count(group + name) == 0) r.failures.push_back(group + name + ": not computed");
    }
  };
  add_missing("output/", case_->output);
  add_missing("grad/", case_->grad);
  r.passed = r.failures.empty();
  return r;
}

}  // namespace moelab::oracle

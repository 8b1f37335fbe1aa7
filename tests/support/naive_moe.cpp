#include "tests/support/naive_moe.hpp"

#include "moe/experts/ffn_options.hpp"
#include "moe/routers/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace moelab::test {

namespace {

double activated(const std::string& name, double a) {
  if (name == "relu") return std::max(a, 0.0);
  if (name == "relu_squared") return std::max(a, 0.0) * std::max(a, 0.0);
  if (name == "silu") return a / (1 + std::exp(-a));
  if (name == "gelu") return a * 0.5 * std::erfc(-a / std::sqrt(2.0));
  if (name == "gelu_tanh") return 0.5 * a * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
  throw std::invalid_argument("no activation " + name);
}

double hidden_value(const std::string& name, double gate, double up) {
  if (name == "swiglu") return activated("silu", gate) * up;
  if (name == "geglu") return activated("gelu", gate) * up;
  if (name == "geglu_tanh") return activated("gelu_tanh", gate) * up;
  if (name == "reglu") return activated("relu", gate) * up;
  if (name == "swiglu_clamped") {
    const double g = std::min(gate, 7.0);
    const double u = std::clamp(up, -7.0, 7.0);
    return g / (1 + std::exp(-1.702 * g)) * (u + 1);
  }
  return activated(name, gate);
}

// Row o of W times x, plus the bias if there is one.
double affine(const NamedMatrices& weights, const std::string& w, const std::string& b, Index o,
              const Matrix& row) {
  double sum = weights.count(b) > 0 ? weights.at(b)(0, o) : 0;
  for (Index i = 0; i < row.cols(); ++i) sum += weights.at(w)(o, i) * row(0, i);
  return sum;
}

std::vector<double> scores(const std::string& kind, const std::vector<double>& z) {
  std::vector<double> s;
  double total = 0;
  for (const double v : z) total += std::exp(v);
  for (const double v : z) {
    if (kind == "softmax") s.push_back(std::exp(v) / total);
    if (kind == "sigmoid") s.push_back(1 / (1 + std::exp(-v)));
    if (kind == "sqrt_softplus") s.push_back(std::sqrt(std::log(1 + std::exp(v))));
  }
  return s;
}

}  // namespace

Matrix naive_ffn(const std::string& activation, const NamedMatrices& weights, const std::string& prefix,
                 const Matrix& row) {
  const Matrix& w1 = weights.at(prefix + "w1");
  Matrix hidden(1, w1.rows());
  for (Index f = 0; f < w1.rows(); ++f) {
    const double gate = affine(weights, prefix + "w1", prefix + "b1", f, row);
    const bool gated = weights.count(prefix + "w3") > 0;
    const double up = gated ? affine(weights, prefix + "w3", prefix + "b3", f, row) : 0;
    hidden(0, f) = static_cast<Scalar>(hidden_value(activation, gate, up));
  }
  Matrix y(1, row.cols());
  for (Index i = 0; i < row.cols(); ++i) {
    y(0, i) = static_cast<Scalar>(affine(weights, prefix + "w2", prefix + "b2", i, hidden));
  }
  return y;
}

Matrix naive_moe(const moe::MoeConfig& config, const NamedMatrices& weights, const Matrix& x) {
  const auto& router = dynamic_cast<const moe::TopKOptions&>(config.router.options());
  std::vector<const moe::FfnExpertOptions*> experts;
  for (const moe::ExpertGroup& group : config.experts) {
    for (Index i = 0; i < group.count; ++i) {
      experts.push_back(&dynamic_cast<const moe::FfnExpertOptions&>(group.expert.options()));
    }
  }
  Matrix y = Matrix::Zero(x.rows(), x.cols());
  for (Index t = 0; t < x.rows(); ++t) {
    const Matrix row = x.row(t);
    std::vector<double> z;
    for (Index e = 0; e < static_cast<Index>(experts.size()); ++e) {
      z.push_back(affine(weights, "router.weight", "router.bias", e, row) /
                  router.scores.projection.temperature);
    }
    const std::vector<double> s = scores(router.scores.score, z);
    std::vector<bool> chosen(s.size(), false);
    double total = 0;
    for (Index k = 0; k < router.choice.top_k; ++k) {
      std::size_t best = s.size();
      for (std::size_t e = 0; e < s.size(); ++e) {
        if (!chosen[e] && (best == s.size() || s[e] > s[best])) best = e;
      }
      chosen[best] = true;
      total += s[best];
    }
    for (std::size_t e = 0; e < s.size(); ++e) {
      if (!chosen[e]) continue;
      const double w = (router.scores.normalize ? s[e] / total : s[e]) * router.scores.scale;
      y.row(t) += static_cast<Scalar>(w) *
                  naive_ffn(experts[e]->activation, weights, "experts." + std::to_string(e) + ".", row);
    }
    if (config.shared) {
      Matrix sum = Matrix::Zero(1, x.cols());
      for (Index i = 0; i < config.shared->count; ++i) {
        sum += naive_ffn(config.shared->expert.activation, weights, "shared." + std::to_string(i) + ".", row);
      }
      if (config.shared->gate == "sigmoid") {
        sum *= static_cast<Scalar>(1 / (1 + std::exp(-affine(weights, "shared.gate", "", 0, row))));
      }
      y.row(t) += sum;
    }
  }
  return y;
}

}  // namespace moelab::test

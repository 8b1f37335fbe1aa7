#include "experiments/plot/power_law.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace moelab::plot {

namespace {

constexpr double kDelta = 1e-3;  // of the Huber loss
constexpr int kResamples = 200;
constexpr std::size_t kSizesForFit = 4;
constexpr double kLeastSpan = 2;  // of the sizes

using Vector = std::array<double, 3>;  // log a, log c, alpha

struct Data {
  std::vector<double> log_size, log_loss;
};

double huber(double residual) {
  const double size = std::abs(residual);
  return size <= kDelta ? 0.5 * size * size : kDelta * (size - 0.5 * kDelta);
}

double objective(const Data& data, const Vector& v) {
  double sum = 0;
  for (std::size_t i = 0; i < data.log_size.size(); ++i) {
    const double power = v[0] - v[2] * data.log_size[i];
    const double high = std::max(power, v[1]), low = std::min(power, v[1]);
    sum += huber(high + std::log1p(std::exp(low - high)) - data.log_loss[i]);
  }
  return v[2] > 0 ? sum : sum + 1e3 * (1 - v[2]);
}

// Nelder and Mead (1965), with their coefficients.
Vector minimise(const Data& data, const Vector& start, double& best) {
  std::array<std::pair<double, Vector>, 4> simplex;
  for (std::size_t i = 0; i < 4; ++i) {
    Vector v = start;
    if (i > 0) v[i - 1] += i == 3 ? 0.1 : 0.5;
    simplex[i] = {objective(data, v), v};
  }
  const auto by_value = [](const auto& a, const auto& b) { return a.first < b.first; };
  for (int iteration = 0; iteration < 400; ++iteration) {
    std::ranges::sort(simplex, by_value);
    if (simplex[3].first - simplex[0].first < 1e-14) break;
    Vector centre{};
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k) centre[k] += simplex[i].second[k] / 3;
    const auto along = [&](double t) {
      Vector v{};
      for (std::size_t k = 0; k < 3; ++k) v[k] = centre[k] + t * (simplex[3].second[k] - centre[k]);
      return std::pair{objective(data, v), v};
    };
    const auto reflected = along(-1);
    if (reflected.first < simplex[0].first) {
      simplex[3] = std::min(along(-2), reflected, by_value);
    } else if (reflected.first < simplex[2].first) {
      simplex[3] = reflected;
    } else {
      const auto contracted = along(reflected.first < simplex[3].first ? -0.5 : 0.5);
      if (contracted.first < std::min(reflected.first, simplex[3].first)) {
        simplex[3] = contracted;
      } else {
        for (std::size_t i = 1; i < 4; ++i) {
          for (std::size_t k = 0; k < 3; ++k)
            simplex[i].second[k] = (simplex[i].second[k] + simplex[0].second[k]) / 2;
          simplex[i].first = objective(data, simplex[i].second);
        }
      }
    }
  }
  std::ranges::sort(simplex, by_value);
  best = simplex[0].first;
  return simplex[0].second;
}

Vector fit(const Data& data) {
  const double lowest = *std::ranges::min_element(data.log_loss);
  const double middle = data.log_size[data.log_size.size() / 2];
  Vector best_at{};
  double best = INFINITY;
  for (const double share : {0.3, 0.6, 0.9}) {
    for (const double alpha : {0.05, 0.2, 0.5}) {
      const double log_c = lowest + std::log(share);
      const double log_a = lowest + std::log(1 - share) + alpha * middle;
      double value = 0;
      const Vector v = minimise(data, {log_a, log_c, alpha}, value);
      if (value < best) {
        best = value;
        best_at = v;
      }
    }
  }
  // Once more from there: a simplex may collapse early.
  return minimise(data, best_at, best);
}

std::size_t different(const std::vector<double>& values) {
  return std::set<double>(values.begin(), values.end()).size();
}

}  // namespace

double PowerLaw::at(double size) const { return c + a * std::pow(size, -alpha); }

std::optional<PowerLaw> fit_power_law(std::span<const double> size, std::span<const double> loss,
                                      double confidence) {
  Data data;
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (!(size[i] > 0) || !(loss[i] > 0) || !std::isfinite(size[i] * loss[i])) continue;
    data.log_size.push_back(std::log(size[i]));
    data.log_loss.push_back(std::log(loss[i]));
  }
  if (different(data.log_size) < kSizesForFit) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(data.log_size);
  if (most - least < std::log(kLeastSpan)) return std::nullopt;
  const Vector v = fit(data);
  PowerLaw law{std::exp(v[1]), std::exp(v[0]), v[2], {NAN, NAN}};
  const random::Stream stream(0, "power_law");
  std::vector<double> alphas;
  std::uint64_t draw = 0;
  for (int r = 0; r < kResamples; ++r) {
    Data resampled;
    for (std::size_t i = 0; i < data.log_size.size(); ++i) {
      const std::size_t pick = stream.below(draw++, data.log_size.size());
      resampled.log_size.push_back(data.log_size[pick]);
      resampled.log_loss.push_back(data.log_loss[pick]);
    }
    if (different(resampled.log_size) < kSizesForFit) continue;
    double value = 0;
    alphas.push_back(minimise(resampled, v, value)[2]);
  }
  if (alphas.size() < kResamples / 4) return law;
  std::ranges::sort(alphas);
  const auto quantile = [&](double q) {
    return alphas[static_cast<std::size_t>(q * static_cast<double>(alphas.size() - 1))];
  };
  law.alpha_interval = {quantile((1 - confidence) / 2), quantile((1 + confidence) / 2)};
  return law;
}

}  // namespace moelab::plot

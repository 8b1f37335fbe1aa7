#include "core/ops/activation.hpp"

#include "core/error.hpp"
#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <numbers>

#include <fmt/ranges.h>

namespace moelab::ops {

namespace {

// Entries of a task; depends on nothing, so that the cut is always the same.
constexpr Index kBlock = 16384;

// A function and its derivative at one point.
struct Point {
  Scalar value, slope;
};

// `x <= 0 ? 0 : x`, not `x > 0 ? x : 0`: a NaN stays one and is noticed.
struct Relu {
  static Point at(Scalar x) { return {x <= 0 ? Scalar{0} : x, Scalar(x <= 0 ? 0 : 1)}; }
};

struct Gelu {
  static Point at(Scalar x) {
    constexpr Scalar kInvSqrt2 = Scalar(1 / std::numbers::sqrt2);
    constexpr Scalar kDensity0 = Scalar(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    const Scalar cdf = Scalar(0.5) * (1 + math::erf(x * kInvSqrt2));
    return {x * cdf, cdf + x * kDensity0 * math::exp(Scalar(-0.5) * x * x)};
  }
};

struct GeluTanh {
  // (1 + tanh u) / 2 = sigmoid(2 u)
  static Point at(Scalar x) {
    constexpr Scalar kTwice = Scalar(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);  // 2 sqrt(2 / pi)
    constexpr Scalar kCubic = Scalar(0.044715);
    const Scalar s = math::sigmoid(kTwice * (x + kCubic * x * x * x));
    return {x * s, s + x * s * (1 - s) * kTwice * (1 + 3 * kCubic * x * x)};
  }
};

struct Silu {
  static Point at(Scalar x) {
    const Scalar s = math::sigmoid(x);
    return {x * s, s * (1 + x * (1 - s))};
  }
};

struct ReluSquared {
  static Point at(Scalar x) {
    const Scalar positive = x <= 0 ? Scalar{0} : x;
    return {positive * positive, 2 * positive};
  }
};

// What the activated gate is multiplied with.
struct PlainFactor {
  static Point at(Scalar u) { return {u, 1}; }
};

constexpr Scalar kLimit = 7;

struct ClampedGate {
  static Point at(Scalar gate) {
    constexpr Scalar kSharpness = Scalar(1.702);
    const Scalar g = gate > kLimit ? kLimit : gate;
    const Scalar s = math::sigmoid(kSharpness * g);
    const Scalar slope = s * (1 + kSharpness * g * (1 - s));
    return {g * s, gate > kLimit ? Scalar{0} : slope};
  }
};

struct ClampedFactor {
  static Point at(Scalar u) {
    const Scalar below = u > kLimit ? kLimit : u;
    const Scalar clamped = below < -kLimit ? -kLimit : below;
    return {clamped + 1, Scalar(clamped == u ? 1 : 0)};
  }
};

// Calls f with the function of an activation that is not gated.
template <class F>
void with_plain(Activation activation, F f) {
  switch (activation) {
    case Activation::relu:
      return f(Relu{});
    case Activation::gelu:
      return f(Gelu{});
    case Activation::gelu_tanh:
      return f(GeluTanh{});
    case Activation::silu:
      return f(Silu{});
    case Activation::relu_squared:
      return f(ReluSquared{});
    default:
      fail("[activation] {} has a gate", activation_names()[static_cast<std::size_t>(activation)]);
  }
}

// Calls f with the functions of the gate and of the other factor.
template <class F>
void with_gated(Activation activation, F f) {
  switch (activation) {
    case Activation::swiglu:
      return f(Silu{}, PlainFactor{});
    case Activation::geglu:
      return f(Gelu{}, PlainFactor{});
    case Activation::geglu_tanh:
      return f(GeluTanh{}, PlainFactor{});
    case Activation::reglu:
      return f(Relu{}, PlainFactor{});
    case Activation::swiglu_clamped:
      return f(ClampedGate{}, ClampedFactor{});
    default:
      fail("[activation] {} has no gate", activation_names()[static_cast<std::size_t>(activation)]);
  }
}

}  // namespace

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names{"relu",   "gelu",  "gelu_tanh",  "silu",  "relu_squared",
                                              "swiglu", "geglu", "geglu_tanh", "reglu", "swiglu_clamped"};
  return names;
}

Activation activation_from_name(std::string_view name) {
  const std::vector<std::string>& names = activation_names();
  const auto found = std::find(names.begin(), names.end(), name);
  require(found != names.end(), "[activation] '{}' is not one of {}", name, fmt::join(names, ", "));
  return static_cast<Activation>(found - names.begin());
}

bool is_gated(Activation activation) { return activation >= Activation::swiglu; }

void activate(Activation activation, const Scalar* x, Scalar* y, Index n) {
  with_plain(activation,
             [&]<class F>(F) { math::for_entries(n, [=](Index i) { y[i] = F::at(x[i]).value; }); });
}

void activate_backward(Activation activation, const Scalar* x, const Scalar* dy, Scalar* dx, Scalar* y,
                       Index n) {
  with_plain(activation, [&]<class F>(F) {
    if (y == nullptr) {
      math::for_entries(n, [=](Index i) { dx[i] = dy[i] * F::at(x[i]).slope; });
      return;
    }
    math::for_entries(n, [=](Index i) {
      const Point p = F::at(x[i]);
      y[i] = p.value;
      dx[i] = dy[i] * p.slope;
    });
  });
}

void activate_gated(Activation activation, const Scalar* gate, const Scalar* up, Scalar* y, Index n) {
  with_gated(activation, [&]<class G, class U>(G, U) {
    math::for_entries(n, [=](Index i) { y[i] = G::at(gate[i]).value * U::at(up[i]).value; });
  });
}

void activate_gated_backward(Activation activation, const Scalar* gate, const Scalar* up, const Scalar* dy,
                             Scalar* dgate, Scalar* dup, Scalar* y, Index n) {
  with_gated(activation, [&]<class G, class U>(G, U) {
    const auto gradient = [=](Index i, const Point& g, const Point& u) {
      const Scalar d = dy[i];
      dgate[i] = d * u.value * g.slope;
      dup[i] = d * g.value * u.slope;
    };
    if (y == nullptr) {
      math::for_entries(n, [=](Index i) { gradient(i, G::at(gate[i]), U::at(up[i])); });
      return;
    }
    math::for_entries(n, [=](Index i) {
      const Point g = G::at(gate[i]);
      const Point u = U::at(up[i]);
      y[i] = g.value * u.value;
      gradient(i, g, u);
    });
  });
}

Variable activate(Activation activation, const Variable& x) {
  const Scalar* in = x.value().data();
  Matrix y(x.rows(), x.cols());
  parallel::for_blocks(y.size(), kBlock, [&](Index begin, Index end) {
    activate(activation, in + begin, y.data() + begin, end - begin);
  });
  return Variable::result(std::move(y), {x}, [activation, x](const Matrix&, const Matrix& dy) {
    const Scalar* saved = x.value().data();
    Matrix dx(dy.rows(), dy.cols());
    parallel::for_blocks(dx.size(), kBlock, [&](Index begin, Index end) {
      activate_backward(activation, saved + begin, dy.data() + begin, dx.data() + begin, nullptr,
                        end - begin);
    });
    x.add_grad(std::move(dx));
  });
}

Variable activate_gated(Activation activation, const Variable& gate, const Variable& up) {
  require(gate.rows() == up.rows() && gate.cols() == up.cols(), "[activation] gate ({}, {}) and up ({}, {})",
          gate.rows(), gate.cols(), up.rows(), up.cols());
  const Scalar* g = gate.value().data();
  const Scalar* u = up.value().data();
  Matrix y(gate.rows(), gate.cols());
  parallel::for_blocks(y.size(), kBlock, [&](Index begin, Index end) {
    activate_gated(activation, g + begin, u + begin, y.data() + begin, end - begin);
  });
  return Variable::result(std::move(y), {gate, up}, [activation, gate, up](const Matrix&, const Matrix& dy) {
    Matrix dgate(dy.rows(), dy.cols()), dup(dy.rows(), dy.cols());
    parallel::for_blocks(dy.size(), kBlock, [&](Index begin, Index end) {
      activate_gated_backward(activation, gate.value().data() + begin, up.value().data() + begin,
                              dy.data() + begin, dgate.data() + begin, dup.data() + begin, nullptr,
                              end - begin);
    });
    if (gate.requires_grad()) gate.add_grad(std::move(dgate));
    if (up.requires_grad()) up.add_grad(std::move(dup));
  });
}

}  // namespace moelab::ops

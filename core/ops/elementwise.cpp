#include "core/ops/elementwise.hpp"

#include "core/error.hpp"
#include "core/ops/math.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace moelab::ops {

namespace {

// Calls f(begin, count) for blocks of rows of an (rows, cols) matrix.
template <class F>
void for_row_blocks(Index rows, Index cols, const F& f) {
  constexpr Index kBlockValues = Index{1} << 14;
  parallel::for_blocks(rows, std::max<Index>(1, kBlockValues / std::max<Index>(1, cols)),
                       [&](Index begin, Index end) { f(begin, end - begin); });
}

bool same_shape(const Variable& a, const Variable& b) { return a.rows() == b.rows() && a.cols() == b.cols(); }

// Reads a matrix as if it had the common shape of a binary operation.
struct Broadcast {
  explicit Broadcast(const Variable& x)
      : data(x.value().data()), row_step(x.rows() == 1 ? 0 : x.cols()), col_step(x.cols() == 1 ? 0 : 1) {}
  Scalar operator()(Index i, Index j) const { return data[i * row_step + j * col_step]; }
  const Scalar* data;
  Index row_step, col_step;
};

// Adds g, of the common shape, to the gradient of x: the sum over the directions x was broadcast in.
void add_broadcast_grad(const Variable& x, Matrix g) {
  if (x.rows() == g.rows() && x.cols() == g.cols()) {
    x.add_grad(std::move(g));
    return;
  }
  Matrix dx = Matrix::Zero(x.rows(), x.cols());
  for (Index i = 0; i < g.rows(); ++i) {
    for (Index j = 0; j < g.cols(); ++j) dx(x.rows() == 1 ? 0 : i, x.cols() == 1 ? 0 : j) += g(i, j);
  }
  x.add_grad(std::move(dx));
}

// f(a, b) is the value; da(a, b) and db(a, b) are its derivatives.
template <class F, class Da, class Db>
Variable binary(const char* name, const Variable& a, const Variable& b, F f, Da da, Db db) {
  const auto common = [&](Index m, Index n) {
    require(m == n || m == 1 || n == 1, "[{}] shapes ({}, {}) and ({}, {}) do not broadcast", name, a.rows(),
            a.cols(), b.rows(), b.cols());
    return m == 1 ? n : m;
  };
  const Index rows = common(a.rows(), b.rows());
  const Index cols = common(a.cols(), b.cols());
  const auto map = [rows, cols](const Variable& u, const Variable& v, auto function) {
    const Broadcast x(u), y(v);
    Matrix out(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) out(i, j) = function(x(i, j), y(i, j), i, j);
    }
    return out;
  };
  return Variable::result(
      map(a, b, [f](Scalar u, Scalar v, Index, Index) { return f(u, v); }), {a, b},
      [a, b, map, da, db](const Matrix&, const Matrix& dy) {
        const auto chain = [&](auto derivative) {
          return map(a, b, [&](Scalar u, Scalar v, Index i, Index j) { return dy(i, j) * derivative(u, v); });
        };
        if (a.requires_grad()) add_broadcast_grad(a, chain(da));
        if (b.requires_grad()) add_broadcast_grad(b, chain(db));
      });
}

// f(x) is the value; df(x, y) its derivative, where y = f(x).
template <class F, class Df>
Variable unary(const Variable& x, F f, Df df) {
  const ConstMatrixView in = x.value();
  Matrix out(x.rows(), x.cols());
  for_row_blocks(x.rows(), x.cols(), [&](Index begin, Index count) {
    out.middleRows(begin, count) = in.middleRows(begin, count).unaryExpr(f);
  });
  return Variable::result(std::move(out), {x}, [x, df](const Matrix& y, const Matrix& dy) {
    const ConstMatrixView value = x.value();
    Matrix dx(y.rows(), y.cols());
    for_row_blocks(y.rows(), y.cols(), [&](Index begin, Index count) {
      dx.middleRows(begin, count) = value.middleRows(begin, count)
                                        .binaryExpr(y.middleRows(begin, count), df)
                                        .cwiseProduct(dy.middleRows(begin, count));
    });
    x.add_grad(std::move(dx));
  });
}

}  // namespace

Variable add(const Variable& a, const Variable& b) {
  if (same_shape(a, b)) {  // the residual connections: no need for more than a copy of the gradient
    const ConstMatrixView u = a.value(), v = b.value();
    Matrix y(a.rows(), a.cols());
    for_row_blocks(y.rows(), y.cols(), [&](Index begin, Index count) {
      y.middleRows(begin, count) = u.middleRows(begin, count) + v.middleRows(begin, count);
    });
    return Variable::result(std::move(y), {a, b}, [a, b](const Matrix&, const Matrix& dy) {
      for (const Variable& x : {a, b}) {
        if (!x.requires_grad()) continue;
        Matrix dx(dy.rows(), dy.cols());
        for_row_blocks(dy.rows(), dy.cols(), [&](Index begin, Index count) {
          dx.middleRows(begin, count) = dy.middleRows(begin, count);
        });
        x.add_grad(std::move(dx));
      }
    });
  }
  const auto one = [](Scalar, Scalar) { return Scalar{1}; };
  return binary(
      "add", a, b, [](Scalar u, Scalar v) { return u + v; }, one, one);
}

Variable subtract(const Variable& a, const Variable& b) {
  return binary(
      "subtract", a, b, [](Scalar u, Scalar v) { return u - v; }, [](Scalar, Scalar) { return Scalar{1}; },
      [](Scalar, Scalar) { return Scalar{-1}; });
}

Variable multiply(const Variable& a, const Variable& b) {
  return binary(
      "multiply", a, b, [](Scalar u, Scalar v) { return u * v; }, [](Scalar, Scalar v) { return v; },
      [](Scalar u, Scalar) { return u; });
}

Variable divide(const Variable& a, const Variable& b) {
  return binary(
      "divide", a, b, [](Scalar u, Scalar v) { return u / v; }, [](Scalar, Scalar v) { return 1 / v; },
      [](Scalar u, Scalar v) { return -(u / v) / v; });
}

Variable scale(const Variable& x, double factor) {
  const auto c = static_cast<Scalar>(factor);
  return unary(
      x, [c](Scalar v) { return c * v; }, [c](Scalar, Scalar) { return c; });
}

Variable add_constant(const Variable& x, double term) {
  const auto c = static_cast<Scalar>(term);
  return unary(
      x, [c](Scalar v) { return v + c; }, [](Scalar, Scalar) { return Scalar{1}; });
}

Variable negate(const Variable& x) { return scale(x, -1); }

Variable exp(const Variable& x) {
  return unary(
      x, [](Scalar v) { return math::exp(v); }, [](Scalar, Scalar y) { return y; });
}

Variable log(const Variable& x) {
  return unary(
      x, [](Scalar v) { return std::log(v); }, [](Scalar v, Scalar) { return 1 / v; });
}

Variable sqrt(const Variable& x) {
  return unary(
      x, [](Scalar v) { return std::sqrt(v); }, [](Scalar, Scalar y) { return Scalar(0.5) / y; });
}

Variable square(const Variable& x) {
  return unary(
      x, [](Scalar v) { return v * v; }, [](Scalar v, Scalar) { return 2 * v; });
}

Variable tanh(const Variable& x) {
  return unary(
      x, [](Scalar v) { return std::tanh(v); }, [](Scalar, Scalar y) { return 1 - y * y; });
}

Variable sigmoid(const Variable& x) {
  return unary(
      x, [](Scalar v) { return math::sigmoid(v); }, [](Scalar, Scalar y) { return y * (1 - y); });
}

Variable softplus(const Variable& x) {
  return unary(
      x, [](Scalar v) { return std::max(v, Scalar{0}) + std::log1p(std::exp(-std::abs(v))); },
      [](Scalar v, Scalar) { return math::sigmoid(v); });
}

Variable relu(const Variable& x) {  // a NaN stays one
  return unary(
      x, [](Scalar v) { return v <= 0 ? Scalar{0} : v; }, [](Scalar v, Scalar) { return Scalar(v > 0); });
}

Variable clamp(const Variable& x, double low, double high) {
  require(low <= high, "[clamp] low={} exceeds high={}", low, high);
  const auto lo = static_cast<Scalar>(low), hi = static_cast<Scalar>(high);
  return unary(
      x, [lo, hi](Scalar v) { return std::clamp(v, lo, hi); },
      [lo, hi](Scalar v, Scalar) { return Scalar(v >= lo && v <= hi); });
}

Variable normal_cdf(const Variable& x) {
  constexpr double kDensity0 = std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // 1 / sqrt(2 pi)
  return unary(
      x, [](Scalar v) { return Scalar(0.5 * std::erfc(-double{v} / std::numbers::sqrt2)); },
      [](Scalar v, Scalar) { return Scalar(kDensity0 * std::exp(-0.5 * double{v} * double{v})); });
}

}  // namespace moelab::ops

#include "core/optim.hpp"

#include "core/error.hpp"
#include "core/parallel.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace moelab {

namespace {

// Scalars in one piece of an update or of a norm.
constexpr Index kBlock = 16384;

// A run of values of one trainable parameter, at the same place in every flat buffer.
struct Piece {
  Index begin = 0;
  Index size = 0;
  std::size_t parameter = 0;
};

// Cuts the trainable parameters into pieces of at most kBlock.
std::vector<Piece> cut(const ParameterStore& store) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < store.parameters().size(); ++i) {
    const Parameter& p = *store.parameters()[i].parameter;
    if (!p.trainable) continue;
    for (Index at = 0; at < p.size(); at += kBlock) {
      pieces.push_back({store.offset(i) + at, std::min(kBlock, p.size() - at), i});
    }
  }
  return pieces;
}

// A buffer beside the store's own, with zeros at first.
class State {
 public:
  explicit State(const ParameterStore& store) : values_(Matrix::Zero(1, store.size())) {}
  Scalar* at(Index offset) { return values_.data() + offset; }
  void visit(const std::string& prefix, const ParameterStore& store,
             const std::function<void(const std::string& name, MatrixView state)>& f) {
    for (std::size_t i = 0; i < store.parameters().size(); ++i) {
      const auto& [path, p] = store.parameters()[i];
      if (p->trainable) f(prefix + path, MatrixView(at(store.offset(i)), p->rows(), p->cols()));
    }
  }

 private:
  Matrix values_;
};

// Tells infinities and NaN in passing, by whole numbers: unlike a sum of floats, this may be done in vectors.
class Watch {
 public:
  void see(Scalar value) {
    // All bits of the exponent set: one more in its lowest place carries into the bit of the sign.
    seen_ |= (std::bit_cast<Bits>(value) & ~kSign) + kLowestOfExponent;
  }
  bool all_finite() const { return (seen_ & kSign) == 0; }

 private:
  using Bits = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
  static constexpr Bits kSign = Bits{1} << (8 * sizeof(Scalar) - 1);
  static constexpr Bits kLowestOfExponent = Bits{1} << (std::numeric_limits<Scalar>::digits - 1);
  Bits seen_ = 0;
};

// What both update rules share: the walk over the pieces.
class FlatOptimizer : public Optimizer {
 public:
  explicit FlatOptimizer(ParameterStore& store) : store_(store) {}
  bool step(double lr) final {
    ++steps_;
    const std::vector<Piece> pieces = cut(store_);
    prepare(lr);
    const Scalar* grads = store_.grads().data();
    std::atomic<bool> all_finite = true;
    parallel::for_each(static_cast<Index>(pieces.size()), [&](Index i) {
      const Piece& piece = pieces[static_cast<std::size_t>(i)];
      if (!update(piece.begin, piece.size, grads + piece.begin,
                  store_.parameters()[piece.parameter].parameter->decayed())) {
        all_finite = false;
      }
    });
    for (const NamedParameter& p : store_.parameters()) {
      if (p.parameter->trainable) p.parameter->mark_changed();
    }
    return all_finite;
  }
  std::int64_t num_steps() const final { return steps_; }
  void set_num_steps(std::int64_t steps) final { steps_ = steps; }

 protected:
  // Constants of this step, before any update().
  virtual void prepare(double lr) = 0;
  // The values from `begin` on of one parameter; g: their gradients. Whether all that it wrote is finite.
  virtual bool update(Index begin, Index size, const Scalar* g, bool decayed) = 0;
  ParameterStore& store() { return store_; }

 private:
  ParameterStore& store_;
  std::int64_t steps_ = 0;
};

class AdamW final : public FlatOptimizer {
 public:
  AdamW(ParameterStore& store, const AdamWOptions& options)
      : FlatOptimizer(store), options_(options), m_(store), v_(store) {}

  void visit_state(const std::function<void(const std::string&, MatrixView)>& f) override {
    m_.visit("m.", store(), f);
    v_.visit("v.", store(), f);
  }

 private:
  void prepare(double lr) override {
    const auto t = static_cast<double>(num_steps());
    step_size_ = static_cast<Scalar>(lr / (1 - std::pow(options_.beta1, t)));
    root_scale_ = static_cast<Scalar>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
    keep_ = static_cast<Scalar>(1 - lr * options_.weight_decay);
  }

  bool update(Index begin, Index size, const Scalar* g, bool decayed) override {
    Scalar* w = store().values().data() + begin;
    Scalar* m = m_.at(begin);
    Scalar* v = v_.at(begin);
    const auto beta1 = static_cast<Scalar>(options_.beta1);
    const auto beta2 = static_cast<Scalar>(options_.beta2);
    const auto eps = static_cast<Scalar>(options_.eps);
    const Scalar keep = decayed ? keep_ : Scalar{1};
    Watch watch;
    for (Index i = 0; i < size; ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      w[i] = keep * w[i] - step_size_ * m[i] / (std::sqrt(v[i]) * root_scale_ + eps);
      watch.see(v[i]);  // infinite, it would keep its weight where it is
      watch.see(w[i]);  // not finite either where m[i] is not
    }
    return watch.all_finite();
  }

  AdamWOptions options_;
  State m_, v_;
  Scalar step_size_ = 0;   // lr / (1 - beta1^t)
  Scalar root_scale_ = 0;  // 1 / sqrt(1 - beta2^t)
  Scalar keep_ = 0;        // 1 - lr weight_decay
};

class Sgd final : public FlatOptimizer {
 public:
  Sgd(ParameterStore& store, const SgdOptions& options) : FlatOptimizer(store), options_(options) {
    if (options_.momentum != 0) velocity_ = std::make_unique<State>(store);
  }

  void visit_state(const std::function<void(const std::string&, MatrixView)>& f) override {
    if (velocity_) velocity_->visit("velocity.", store(), f);
  }

 private:
  void prepare(double lr) override { lr_ = static_cast<Scalar>(lr); }

  bool update(Index begin, Index size, const Scalar* g, bool decayed) override {
    Scalar* w = store().values().data() + begin;
    const auto decay = static_cast<Scalar>(decayed ? options_.weight_decay : 0);
    Watch watch;
    if (!velocity_) {
      for (Index i = 0; i < size; ++i) {
        w[i] -= lr_ * (g[i] + decay * w[i]);
        watch.see(w[i]);
      }
      return watch.all_finite();
    }
    Scalar* velocity = velocity_->at(begin);
    const auto momentum = static_cast<Scalar>(options_.momentum);
    for (Index i = 0; i < size; ++i) {
      velocity[i] = momentum * velocity[i] + g[i] + decay * w[i];
      w[i] -= lr_ * velocity[i];
      watch.see(w[i]);  // not finite either where velocity[i] is not
    }
    return watch.all_finite();
  }

  SgdOptions options_;
  std::unique_ptr<State> velocity_;
  Scalar lr_ = 0;
};

// In lanes that are added at the end, so that the compiler may use vectors without changing the order.
double sum_of_squares(const Scalar* values, Index size) {
  constexpr Index lanes = 16;
  std::array<double, lanes> sums{};
  Index i = 0;
  for (; i + lanes <= size; i += lanes) {
    for (Index j = 0; j < lanes; ++j) {
      const auto value = static_cast<double>(values[i + j]);
      sums[static_cast<std::size_t>(j)] += value * value;
    }
  }
  for (; i < size; ++i) sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

std::unique_ptr<Optimizer> make_adamw(ParameterStore& store, const AdamWOptions& options) {
  return std::make_unique<AdamW>(store, options);
}

std::unique_ptr<Optimizer> make_sgd(ParameterStore& store, const SgdOptions& options) {
  return std::make_unique<Sgd>(store, options);
}

double grad_norm(ParameterStore& store) {
  const std::vector<Piece> pieces = cut(store);
  const Scalar* grads = store.grads().data();
  const double sum = parallel::ordered_sum(static_cast<Index>(pieces.size()), 1, [&](Index i, Index) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    return sum_of_squares(grads + piece.begin, piece.size);
  });
  if (!std::isfinite(sum)) {
    // From the end, as backward went: what it reached after the overflow is not finite either.
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      const auto values = ConstMatrixView(grads + piece->begin, 1, piece->size);
      if (!values.allFinite()) {
        throw NonFiniteError(fmt::format("[optimizer] the gradient of {} is not finite",
                                         store.parameters()[piece->parameter].path));
      }
    }
    throw NonFiniteError("[optimizer] the norm of the gradients is not finite");
  }
  return std::sqrt(sum);
}

double clip_grad_norm(ParameterStore& store, double max_norm) {
  require(max_norm > 0, "[optimizer] grad_clip={} is not positive", max_norm);
  const double norm = grad_norm(store);
  const double coefficient = max_norm / (norm + 1e-6);
  if (coefficient < 1) {
    // A factor that Scalar would take for 0 goes in two parts, of which the first brings large gradients
    // down.
    const bool fits = coefficient >= static_cast<double>(std::numeric_limits<Scalar>::min());
    const auto first = static_cast<Scalar>(fits ? coefficient : std::sqrt(coefficient));
    MatrixView grads = store.grads();
    parallel::for_blocks(grads.size(), kBlock, [&](Index begin, Index end) {
      auto block = grads.middleCols(begin, end - begin);
      block *= first;
      if (!fits) block *= first;
    });
  }
  return norm;
}

}  // namespace moelab

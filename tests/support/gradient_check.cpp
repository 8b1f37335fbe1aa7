#include "tests/support/gradient_check.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moelab::test {

namespace {

static_assert(sizeof(Scalar) == sizeof(double), "gradients are checked in the float64 build");

// Something whose gradient is checked: an input or a parameter.
struct Tensor {
  std::string name;
  MatrixView value;
  Matrix analytic;
  Parameter* parameter = nullptr;
};

class Checker {
 public:
  Checker(const Function& f, const std::vector<Matrix>& inputs, Module* module, GradientCheck check)
      : f_(f), inputs_(inputs), check_(check) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Matrix& m = inputs_[i];
      tensors_.push_back({fmt::format("input {}", i), {m.data(), m.rows(), m.cols()}, {}, nullptr});
    }
    if (module == nullptr) return;
    for (const NamedParameter& p : parameters(*module)) {
      if (p.parameter->trainable) tensors_.push_back({p.path, p.parameter->value(), {}, p.parameter});
    }
  }

  std::string run() {
    const Matrix y = f_(leaves(false)).value();
    probe_ = random_matrix(y.rows(), y.cols(), 1000);
    differentiate();
    for (const Tensor& tensor : tensors_) {
      const std::string mismatch = compare(tensor);
      if (!mismatch.empty()) return mismatch;
    }
    return {};
  }

 private:
  std::vector<Variable> leaves(bool requires_grad) const {
    std::vector<Variable> x;
    for (const Matrix& m : inputs_) x.emplace_back(m, requires_grad);
    return x;
  }

  void differentiate() {
    const std::vector<Variable> x = leaves(true);
    std::vector<Matrix> before;
    const auto gradient = [&](std::size_t i) {
      return tensors_[i].parameter ? tensors_[i].parameter->grad() : x[i].grad();
    };
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const MatrixView value = tensors_[i].value;
      before.push_back(random_matrix(value.rows(), value.cols(), 2000 + static_cast<unsigned>(i)));
      gradient(i) = before.back();
    }
    backward(f_(x), probe_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].analytic = gradient(i) - before[i];
  }

  double loss() const { return f_(leaves(false)).value().cwiseProduct(probe_).sum(); }

  double difference(const Tensor& tensor, Scalar& entry, double step) const {
    const Scalar old = entry;
    const auto loss_at = [&](double value) {
      entry = value;
      if (tensor.parameter) tensor.parameter->mark_changed();
      return loss();
    };
    const double high = loss_at(old + step);
    const double low = loss_at(old - step);
    entry = old;
    if (tensor.parameter) tensor.parameter->mark_changed();
    return (high - low) / (2 * step);
  }

  std::string compare(const Tensor& tensor) const {
    const Index size = tensor.value.size();
    const Index stride = std::max<Index>(1, (size + check_.max_entries - 1) / check_.max_entries);
    double largest = 1e-3, worst = 0, worst_numeric = 0;
    Index worst_at = 0;
    for (Index i = 0; i < size; i += stride) {
      Scalar& entry = const_cast<Scalar&>(tensor.value.data()[i]);
      const double coarse = difference(tensor, entry, check_.step);
      const double fine = difference(tensor, entry, check_.step / 2);
      const double numeric = (4 * fine - coarse) / 3;
      const double error = std::abs(numeric - tensor.analytic.data()[i]);
      largest = std::max(largest, std::abs(numeric));
      if (error > worst || std::isnan(error)) worst = error, worst_at = i, worst_numeric = numeric;
      if (std::isnan(error)) break;
    }
    if (worst <= check_.tolerance * largest) return {};
    return fmt::format(
        "gradient of {} at ({}, {}): backward gives {:.12g}, differences {:.12g} (largest {:.3g})",
        tensor.name, worst_at / tensor.value.cols(), worst_at % tensor.value.cols(),
        tensor.analytic.data()[worst_at], worst_numeric, largest);
  }

  const Function& f_;
  std::vector<Matrix> inputs_;
  GradientCheck check_;
  std::vector<Tensor> tensors_;
  Matrix probe_;
};

}  // namespace

std::string gradient_mismatch(const Function& f, const std::vector<Matrix>& inputs, GradientCheck check) {
  return Checker(f, inputs, nullptr, check).run();
}

std::string gradient_mismatch(const Function& f, const std::vector<Matrix>& inputs, Module& module,
                              GradientCheck check) {
  return Checker(f, inputs, &module, check).run();
}

Matrix random_matrix(Index rows, Index cols, unsigned stream, double std) {
  Matrix m(rows, cols);
  random::fill_normal(m, random::Stream(stream, "test"), std);
  return m;
}

void randomise_parameters(Module& module, double std) {
  unsigned stream = 5000;
  for (const NamedParameter& p : parameters(module)) {
    p.parameter->value() = random_matrix(p.parameter->rows(), p.parameter->cols(), stream++, std);
    p.parameter->mark_changed();
  }
}

}  // namespace moelab::test

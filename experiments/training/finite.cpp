#include "experiments/training/finite.hpp"

#include "core/error.hpp"

#include <cmath>
#include <optional>

namespace moelab {

namespace {

ConstMatrixView view(const MatrixView& m) { return {m.data(), m.rows(), m.cols()}; }

// "NaN at row 3, column 0", or nothing where all entries are finite.
std::optional<std::string> first_bad_entry(const ConstMatrixView& m) {
  if (m.allFinite()) return std::nullopt;
  for (Index i = 0; i < m.rows(); ++i) {
    for (Index j = 0; j < m.cols(); ++j) {
      if (!std::isfinite(m(i, j))) {
        return fmt::format("{} at row {}, column {}", std::isnan(m(i, j)) ? "NaN" : "infinity", i, j);
      }
    }
  }
  return std::nullopt;
}

void require_finite(const ConstMatrixView& value, std::int64_t step, const std::string& what) {
  if (const auto bad = first_bad_entry(value)) {
    throw NonFiniteError(fmt::format("step {}: {} is not finite ({})", step, what, *bad));
  }
}

}  // namespace

ModelOutput checked_forward(Model& model, const Batch& batch, const ForwardContext& context) {
  try {
    return model.forward(batch, context);
  } catch (const NonFiniteError& e) {
    throw NonFiniteError(fmt::format("step {}: {}", context.step + 1, e.what()));
  }
}

void require_finite_parameters(Model& model, std::int64_t step) {
  for (const NamedParameter& p : parameters(model)) {
    require_finite(view(p.parameter->value()), step, "parameter " + p.path);
  }
}

void require_finite_state(Model& model, Optimizer& optimizer, std::int64_t step) {
  require_finite_parameters(model, step);
  for (const NamedState& s : states(model)) {
    require_finite({s.state->data(), s.state->rows(), s.state->cols()}, step, "state " + s.path);
  }
  optimizer.visit_state([&](const std::string& name, const MatrixView& state) {
    require_finite(view(state), step, "optimizer state " + name);
  });
}

void name_non_finite(Model& model, const Batch& batch, const ForwardContext& context,
                     const std::string& what) {
  require_finite_parameters(model, static_cast<std::int64_t>(context.step) + 1);
  const ForwardContext::Observer observer = [&](const std::string& path, const Variable& value) {
    if (const auto bad = first_bad_entry(value.value())) {
      throw NonFiniteError(fmt::format("the output of {} is not finite ({})", path, *bad));
    }
  };
  ForwardContext observed = context;
  observed.record = false;
  observed.observer = &observer;
  checked_forward(model, batch, observed);
  throw NonFiniteError(fmt::format("step {}: {} is not finite", context.step + 1, what));
}

}  // namespace moelab

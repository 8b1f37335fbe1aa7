#include "experiments/training/finite.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace moelab {

namespace {

ConstMatrixView view(const MatrixView& m) { return {m.data(), m.rows(), m.cols()}; }

// "NaN at row 3, column 0", or nothing where all entries are finite. Rows of padding hold anything; is_real
// as in Batch.
std::optional<std::string> first_bad_entry(const ConstMatrixView& m,
                                           const std::vector<std::uint8_t>& is_real = {}) {
  if (m.allFinite()) return std::nullopt;
  const bool per_row = static_cast<Index>(is_real.size()) == m.rows();
  for (Index i = 0; i < m.rows(); ++i) {
    if (per_row && is_real[static_cast<std::size_t>(i)] == 0) continue;
    for (Index j = 0; j < m.cols(); ++j) {
      if (!std::isfinite(m(i, j))) {
        return fmt::format("{} at row {}, column {}", std::isnan(m(i, j)) ? "NaN" : "infinity", i, j);
      }
    }
  }
  return std::nullopt;
}

// when: "step 3".
void require_finite(const ConstMatrixView& value, const std::string& when, const std::string& what) {
  if (const auto bad = first_bad_entry(value)) {
    throw NonFiniteError(fmt::format("{}: {} is not finite ({})", when, what, *bad));
  }
}

void require_finite_parameters(Model& model, const std::string& when) {
  for (const NamedParameter& p : parameters(model)) {
    require_finite(view(p.parameter->value()), when, "parameter " + p.path);
  }
}

std::string after(std::int64_t step) { return fmt::format("step {}", step); }

// The step that a forward pass belongs to.
std::string step_in_work(const ForwardContext& context) {
  if (context.training) return fmt::format("step {}", context.step + 1);
  return fmt::format("step {}: in the evaluation", context.step);
}

}  // namespace

ModelOutput checked_forward(Model& model, const Batch& batch, const ForwardContext& context) {
  try {
    return model.forward(batch, context);
  } catch (const NonFiniteError& e) {
    name_non_finite(model, batch, context, e.what());
  }
}

bool states_are_finite(const std::vector<NamedState>& states) {
  return std::all_of(states.begin(), states.end(), [](const NamedState& s) { return s.state->allFinite(); });
}

void require_finite_state(Model& model, Optimizer& optimizer, std::int64_t step) {
  require_finite_parameters(model, after(step));
  for (const NamedState& s : states(model)) {
    require_finite({s.state->data(), s.state->rows(), s.state->cols()}, after(step), "state " + s.path);
  }
  optimizer.visit_state([&](const std::string& name, const MatrixView& state) {
    require_finite(view(state), after(step), "optimizer state " + name);
  });
}

void name_non_finite(Model& model, const Batch& batch, const ForwardContext& context,
                     const std::string& otherwise) {
  const std::string when = step_in_work(context);
  require_finite_parameters(model, when);
  const auto look_at = [&](const ConstMatrixView& value, const std::string& what) {
    if (const auto bad = first_bad_entry(value, batch.is_real)) {
      throw NonFiniteError(fmt::format("{} not finite ({})", what, *bad));
    }
  };
  const ForwardContext::Observer observer = [&](const std::string& path, const Variable& value) {
    look_at(value.value(), fmt::format("the output of {} is", path));
  };
  ForwardContext observed = context;
  observed.record = false;
  observed.observer = &observer;
  std::string found = otherwise;
  try {
    look_at({batch.features.data(), batch.features.rows(), batch.features.cols()}, "the data: features are");
    const Matrix& targets = batch.regression_targets;
    look_at({targets.data(), targets.rows(), targets.cols()}, "the data: targets are");
    model.forward(batch, observed);
  } catch (const NonFiniteError& e) {
    found = e.what();
  }
  throw NonFiniteError(fmt::format("{}: {}", when, found));
}

}  // namespace moelab

#include "experiments/training/finite.hpp"

#include "core/error.hpp"

#include <cmath>
#include <optional>

namespace moelab {

namespace {

// "NaN at row 3, column 0", or nothing where all entries are finite.
std::optional<std::string> first_bad_entry(const ConstMatrixView& m) {
  for (Index i = 0; i < m.rows(); ++i) {
    for (Index j = 0; j < m.cols(); ++j) {
      if (!std::isfinite(m(i, j))) {
        return fmt::format("{} at row {}, column {}", std::isnan(m(i, j)) ? "NaN" : "infinity", i, j);
      }
    }
  }
  return std::nullopt;
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
    const MatrixView value = p.parameter->value();
    if (const auto bad = first_bad_entry({value.data(), value.rows(), value.cols()})) {
      throw NonFiniteError(fmt::format("step {}: parameter {} is not finite ({})", step, p.path, *bad));
    }
  }
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

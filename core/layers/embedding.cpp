#include "core/layers/embedding.hpp"

#include "core/error.hpp"
#include "core/layers/linear.hpp"
#include "core/ops/embedding.hpp"
#include "core/ops/linear.hpp"

namespace moelab {

Embedding::Embedding(Index num_rows, Index width) : table_(num_rows, width, Init::normal(kInitialStd)) {}

Variable Embedding::forward(std::span<const std::int32_t> ids, const ForwardContext& context) {
  return ops::embedding(Variable(table_, context.record), ids);
}

void Embedding::visit(Visitor& visitor) { visitor.parameter("", table_); }

Head::Head(Index width, Index num_rows, Embedding* tied) : width_(width), num_rows_(num_rows), tied_(tied) {
  if (tied == nullptr) {
    weight_.emplace(num_rows, width, Init::normal(kInitialStd));
    return;
  }
  require(tied->table().rows() == num_rows && tied->table().cols() == width,
          "[head] ({}, {}) tied to a table ({}, {})", num_rows, width, tied->table().rows(),
          tied->table().cols());
}

Variable Head::forward(const Variable& x, const ForwardContext& context) {
  Parameter& weight = tied_ ? tied_->table() : *weight_;
  return linear(x, Variable(weight, context.record), Variable(), context.precision);
}

void Head::visit(Visitor& visitor) {
  if (weight_) visitor.parameter("", *weight_);
  visitor.product("", {.out = num_rows_, .in = width_});
}

}  // namespace moelab

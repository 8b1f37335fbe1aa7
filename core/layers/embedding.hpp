// A table with a row for each token id or position, declared under the name of the module itself; and the
// head, which maps hidden rows to logits with a table of its own or with that of an embedding.
#pragma once

#include "core/autograd.hpp"
#include "core/context.hpp"
#include "core/module.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace moelab {

class Embedding : public Module {
 public:
  Embedding(Index num_rows, Index width);
  // (N) ids -> (N, width)
  Variable forward(std::span<const std::int32_t> ids, const ForwardContext& context);
  Parameter& table() { return table_; }
  void visit(Visitor& visitor) override;

 private:
  Parameter table_;
};

class Head : public Module {
 public:
  // Logits for num_rows tokens; `tied` to the table of an embedding, which outlives the head, or null.
  Head(Index width, Index num_rows, Embedding* tied);
  // (N, width) -> (N, num_rows)
  Variable forward(const Variable& x, const ForwardContext& context);
  void visit(Visitor& visitor) override;

 private:
  Index width_, num_rows_;
  Embedding* tied_;
  std::optional<Parameter> weight_;
};

}  // namespace moelab
